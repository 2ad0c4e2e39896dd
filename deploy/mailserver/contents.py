"""What a message holds besides its places: its attachments, and a row of messagev3 that lists them.

James writes them before the truth's first row, attachments first, and deletes them after the
truth's last one. As in James 3.8.1: `CassandraMessageDAOV3`, `DeleteMessageListener`.
"""

from uuid import UUID

from cassandra.cluster import ResultSet, Session

from deploy.mailserver.attachments import (
    Shape,
    id_as_uuid,
    listed,
    reference_write,
    row_statement,
)
from deploy.mailserver.history import Statement
from deploy.mailserver.mail import Content
from deploy.mailserver.projection import ProjectionWriter
from deploy.mailserver.statements import Statements


class ContentStore:
    """Writes contents as one mail server does; safe for threads.

    Raises what ProjectionWriter.send raises when a statement to attachmentmessageid fails.
    """

    def __init__(
        self,
        session: Session,
        keyspace: str,
        projection: ProjectionWriter,
        shape: Shape = Shape.SINCE_3_7,
    ) -> None:
        self._statements = Statements(session)
        self._keyspace = keyspace
        self._projection = projection
        self._shape = shape

    def store(self, content: Content) -> None:
        """Before its message gets a place; a copy shares it."""
        for each in content.attachments:
            cql, values = row_statement(each, content.messageid, self._shape, self._keyspace)
            self._statements.start(cql, values).result()
            if self._shape is Shape.UNTIL_3_6:
                write = reference_write(Statement.INSERT, content.messageid, each.id)
                self._projection.send(write)
        self._store_row(content)
        if self._shape is Shape.UNTIL_3_6:
            uuids = {id_as_uuid(each.id) for each in content.attachments}
            self._projection.ledger.stored(content.messageid, uuids)

    def _store_row(self, content: Content) -> None:
        columns = {
            "internaldate": content.internaldate,
            "bodystartoctet": content.bodystartoctet,
            "fullcontentoctets": content.fullcontentoctets,
            "bodycontent": content.headercontent,
            "headercontent": content.headercontent,
        }
        assignments = [f"{column} = ?" for column in columns]
        values: list[object] = [*columns.values()]
        if content.attachments:
            assignments.append("attachments = ? + attachments")
            values.append(listed(content.attachments))
        cql = f"UPDATE {self._keyspace}.messagev3 SET {', '.join(assignments)} WHERE messageid = ?"
        self._statements.start(cql, [*values, content.messageid]).result()

    def delete(self, messageid: UUID) -> None:
        """No truth row of the message is left anywhere: nobody can read it any more.

        First the rows of attachments that no other message refers to, then the references, then the
        row that lists them.
        """
        attachmentids = self._listed(messageid)
        for each in attachmentids:
            if not self._others(id_as_uuid(each), messageid):
                self._run("DELETE FROM $.attachmentv2 WHERE idasuuid = ?", id_as_uuid(each))
        for each in attachmentids:
            self._projection.send(reference_write(Statement.DELETE, messageid, each))
        self._run("DELETE FROM $.messagev3 WHERE messageid = ?", messageid)
        self._projection.ledger.stored(messageid, set())

    def _listed(self, messageid: UUID) -> list[str]:
        """The ids of the attachments in the message's own list."""
        rows = self._run("SELECT * FROM $.messagev3 WHERE messageid = ?", messageid)
        return [each.id for row in rows for each in row.attachments or ()]

    def _others(self, attachment: UUID, messageid: UUID) -> bool:
        """Whether another message refers to the attachment."""
        rows = self._run(
            "SELECT messageid FROM $.attachmentmessageid WHERE attachmentidasuuid = ?", attachment
        )
        return any(row.messageid != str(messageid) for row in rows)

    def _run(self, cql: str, key: UUID) -> ResultSet:
        return self._statements.start(cql.replace("$", self._keyspace), [key]).result()
