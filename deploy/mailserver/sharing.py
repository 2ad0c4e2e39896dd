"""How James changes a list of rights: an event by a lightweight transaction, then its subscribers.

As in James 3.8.1: `CommandDispatcher`, `EventStoreDao`, `EventBus`, `CassandraACLMapper` and
`DeleteMessageListener`. The next number of an event must be free; if it is not, the events are read
again. An error of a subscriber is logged and dropped, so its table lacks the change for good.
"""

import logging
from collections.abc import Callable
from operator import itemgetter
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import Session

from deploy.mailserver.faults import StatementTimeoutError
from deploy.mailserver.projection import ProjectionWriter
from deploy.mailserver.rights import (
    AccessList,
    event_of,
    read_event,
    rights_writes,
    user_writes,
    with_rights,
)
from deploy.mailserver.statements import SERVER_TROUBLE, Statements

log = logging.getLogger(__name__)

ATTEMPTS = 11
"""The first one, and James's ten retries."""


class TooManyRetriesError(Exception):
    """Others changed the same list each time."""


class Sharing:
    """Changes lists of rights as one mail server does; safe for threads."""

    def __init__(self, session: Session, keyspace: str, projection: ProjectionWriter) -> None:
        self._statements = Statements(session)
        self._keyspace = keyspace
        self._projection = projection

    def grant(self, mailboxid: UUID, name: str, letters: str) -> None:
        """Replace the rights of one name; no letters take them away."""
        self._change("share", mailboxid, lambda granted: with_rights(granted, name, letters))

    def replace(self, mailboxid: UUID, granted: AccessList) -> None:
        """Replace the whole list."""
        self._change("share", mailboxid, lambda _: granted)

    def delete(self, mailboxid: UUID) -> None:
        """With its mailbox: first the rows of the users that `aclv2` names, then by an event.

        A mailbox that `aclv2` does not know gets no event. Raises what ProjectionWriter.send raises
        when a row's delete fails; then there is no event either.
        """
        rows = self._statements.start(
            f"SELECT * FROM {self._keyspace}.aclv2 WHERE id = ?", [mailboxid]
        ).result()
        known = {row.key: "".join(sorted(row.rights or ())) for row in rows}
        if known:
            for write in user_writes("delete_mailbox", mailboxid, known, {}):
                self._projection.send(write)
            self._change("delete_mailbox", mailboxid, lambda _: {})

    def _change(
        self, operation: str, mailboxid: UUID, change: Callable[[AccessList], AccessList]
    ) -> None:
        """Append the event, then run the subscribers. Raises TooManyRetriesError."""
        for _ in range(ATTEMPTS):
            number, before = self._newest(mailboxid)
            after = change(before)
            if self._append(mailboxid, number, event_of(number, mailboxid, before, after)):
                break
        else:
            raise TooManyRetriesError(mailboxid)
        self._projection.ledger.listed(mailboxid, after)
        for write in rights_writes(operation, mailboxid, before, after):
            try:
                self._projection.send(write)
            except (StatementTimeoutError, *SERVER_TROUBLE) as error:
                log.debug("a subscriber failed: %r", error)

    def _newest(self, mailboxid: UUID) -> tuple[int, AccessList]:
        """The number of the next event, and the list by the newest one, read serially."""
        rows = self._statements.start(
            f"SELECT event FROM {self._keyspace}.eventstore WHERE aggregateid = ?",
            [str(mailboxid)],
            ConsistencyLevel.SERIAL,
        ).result()
        events = sorted(map(read_event, (row.event for row in rows)), key=itemgetter(0))
        lists = [granted for _, granted in events if granted is not None]
        return events[-1][0] + 1 if events else 0, lists[-1] if lists else {}

    def _append(self, mailboxid: UUID, number: int, event: str) -> bool:
        answer = self._statements.start(
            f"INSERT INTO {self._keyspace}.eventstore (aggregateid, eventid, event) "
            "VALUES (?, ?, ?) IF NOT EXISTS",
            [str(mailboxid), number, event],
        ).result()
        return bool(answer.was_applied)
