"""The mail server's books: for each table what it should hold, and what was really written. Pure.

What an index or a counter should hold follows from the messages as they were meant to be.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from uuid import UUID

from deploy.mailserver.attachments import REFERENCES
from deploy.mailserver.counters import CURRENT_QUOTA, MAILBOX_COUNTERS
from deploy.mailserver.history import (
    ELEMENT,
    MESSAGES,
    NO_UID,
    CounterWrite,
    MailWrite,
    ProjectionWrite,
    RowHistory,
    RowKey,
    RowPlace,
    counter_row,
)
from deploy.mailserver.indexes import APPLICABLE_FLAGS, BY_PROJECTION
from deploy.mailserver.mailbox_statements import MAILBOXES, agree
from deploy.mailserver.rights import LIST_RIGHTS, RIGHTS_PROJECTIONS, USER_RIGHTS, is_user

RowSums = Mapping[RowPlace, Counter[str]]


class Books:
    """The histories of all rows of all projections, and the sums of all counters.

    `lists` has the newest list of rights of each mailbox, `contents` the attachments that each
    message lists, as far as references to them are written.
    """

    def __init__(self) -> None:
        self.statements = 0
        self.lists: dict[UUID, Mapping[str, str]] = {}
        self.contents: dict[UUID, Set[UUID]] = {}
        self._rows: defaultdict[RowPlace, RowHistory] = defaultdict(RowHistory)
        self._counted: defaultdict[RowPlace, Counter[str]] = defaultdict(Counter)

    def meant(self, write: MailWrite) -> None:
        """The mail server is about to send this statement."""
        self.statements += 1
        if isinstance(write, ProjectionWrite):
            self._rows[write.place].meant.append(write)

    def applied(self, write: ProjectionWrite, timestamp_us: int) -> None:
        """Cassandra acknowledged this statement with this write time."""
        self._rows[write.place].applied.append((timestamp_us, write))

    def doubtful(self, write: ProjectionWrite) -> None:
        """Cassandra did not answer: this statement may or may not have been applied."""
        self._rows[write.place].in_doubt = True

    def counted(self, write: CounterWrite) -> None:
        """Cassandra acknowledged this counter update."""
        self._counted[write.place].update(write.added)

    def history(self, place: RowPlace) -> RowHistory:
        """All statements of one row."""
        return self._rows.get(place, RowHistory())

    def uids_of(self, mailboxid: UUID, messageid: UUID) -> set[int]:
        """The uids that the message ever had in this mailbox."""
        return {
            int(row[1])
            for row, history in self._messages()
            if row[0] == mailboxid and any(each.messageid == messageid for each in history.meant)
        }

    def differing(self, roots: Mapping[UUID, str]) -> set[RowPlace]:
        """What is wrong in every table, as far as the mail server's own writes tell.

        `roots` names the quota root of each mailbox. An index is not wrong where the message
        itself is: that comes first.
        """
        messages = {
            (MESSAGES, row)
            for row, history in self._messages()
            if history.meant_row() != history.applied_row()
        }
        others = {place for place in self._other_places() if not self.is_right(place)}
        wanted = self._wanted_sums(roots)
        sums = {
            place
            for place in wanted.keys() | self._counted.keys()
            if wanted.get(place, Counter()) != self._counted.get(place, Counter())
        }
        return messages | others | sums

    def is_right(self, place: RowPlace) -> bool:
        """Whether a row is as it must be, of any projection but messages and counters."""
        projection, row = place
        applied = self.history(place).applied_row()
        if projection == MAILBOXES:
            return agree(applied)
        if projection == REFERENCES:
            return bool(applied) == (row[0] in self.contents.get(UUID(str(row[1])), ()))
        granted = self.lists.get(row[0], {}).get(str(row[1]), "")
        if projection == USER_RIGHTS:
            return applied.get("rights", "") == (granted if is_user(str(row[1])) else "")
        if projection == LIST_RIGHTS:
            return set(applied) == {f"{ELEMENT}{letter}" for letter in granted}
        return self._index_is_right(place)

    def _index_is_right(self, place: RowPlace) -> bool:
        """Whether an index row is there just if its message belongs there now.

        The flags of a mailbox are right where none in use is missing.
        """
        projection, row = place
        applied = self.history(place).applied_row()
        if projection == APPLICABLE_FLAGS:
            return self._flags_in_use(row[0]) <= applied.keys()
        message = self.history((MESSAGES, row)).meant_row()
        return bool(applied) == (bool(message) and BY_PROJECTION[projection].belongs(message))

    def _flags_in_use(self, mailboxid: UUID) -> set[str]:
        return {
            cell
            for row, history in self._settled_messages()
            if row[0] == mailboxid
            for cell in history.meant_row()
            if cell.startswith(ELEMENT)
        }

    def _other_places(self) -> Iterator[RowPlace]:
        yield from self._index_places()
        yield from (place for place in self._rows if place[0] in (MAILBOXES, REFERENCES))
        rights = {place for place in self._rows if place[0] in RIGHTS_PROJECTIONS}
        for mailboxid, granted in self.lists.items():
            rights |= {(LIST_RIGHTS, (mailboxid, name)) for name in granted}
            rights |= {(USER_RIGHTS, (mailboxid, name)) for name in filter(is_user, granted)}
        yield from rights
        for messageid, attachments in self.contents.items():
            for attachment in attachments:
                yield REFERENCES, (attachment, str(messageid))

    def _index_places(self) -> set[RowPlace]:
        """Each once: whether the flags of a mailbox are right takes a look at all messages."""
        rows = [row for row, _ in self._settled_messages()]
        flags = {(APPLICABLE_FLAGS, (mailboxid, NO_UID)) for mailboxid, _ in rows}
        return flags | {(projection, row) for row in rows for projection in BY_PROJECTION}

    def _wanted_sums(self, roots: Mapping[UUID, str]) -> RowSums:
        wanted: defaultdict[RowPlace, Counter[str]] = defaultdict(Counter)
        for (mailboxid, _), history in self._messages():
            owners = {MAILBOX_COUNTERS: mailboxid, CURRENT_QUOTA: roots.get(mailboxid)}
            cells = history.meant_row()
            for table, owner in owners.items():
                if cells and owner is not None:
                    wanted[table.projection, counter_row(owner)].update(table.share(cells))
        return wanted

    def _messages(self) -> Iterator[tuple[RowKey, RowHistory]]:
        for (projection, row), history in self._rows.items():
            if projection == MESSAGES:
                yield row, history

    def _settled_messages(self) -> Iterator[tuple[RowKey, RowHistory]]:
        """Those that are listed just if they exist."""
        for row, history in self._messages():
            if bool(history.meant_row()) == bool(history.applied_row()):
                yield row, history
