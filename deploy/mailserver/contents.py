"""What a message holds besides its places: a row of messagev3, from before its first place on.

James writes it before the truth's first row, and deletes it after the truth's last one.
"""

from uuid import UUID

from cassandra.cluster import Session

from deploy.mailserver.mail import Content
from deploy.mailserver.statements import Statements


class ContentStore:
    """Writes messagev3 as one mail server does; safe for threads."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self._statements = Statements(session)
        self._table = f"{keyspace}.messagev3"

    def store(self, content: Content) -> None:
        """Before its message gets a place; a copy shares it."""
        columns = {
            "messageid": content.messageid,
            "internaldate": content.internaldate,
            "bodystartoctet": content.bodystartoctet,
            "fullcontentoctets": content.fullcontentoctets,
            "headercontent": content.headercontent,
            "bodycontent": content.headercontent,
        }
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        cql = f"INSERT INTO {self._table} ({names}) VALUES ({marks})"
        self._statements.start(cql, list(columns.values())).result()

    def delete(self, messageid: UUID) -> None:
        """No truth row of the message is left anywhere: nobody can read it any more."""
        cql = f"DELETE FROM {self._table} WHERE messageid = ?"
        self._statements.start(cql, [messageid]).result()
