"""`mailbox` and `mailboxpathv3` in memory, with the writes of a fix."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

from reconcilers.mailboxes.plan import (
    AddMailbox,
    AddPath,
    DeleteMailbox,
    DeletePath,
    MailboxWrite,
    SetMailboxPath,
    SetPathId,
)
from reconcilers.mailboxes.rows import MailboxPath, MailboxRow, PathRow, Sides
from tests.builders.mailboxes import Row

LATER = (2,)


@dataclass
class MailboxTables:
    """Both tables; ``sent`` are the writes in their order, ``asked`` the ids asked for messages."""

    by_id: dict[UUID, MailboxRow] = field(default_factory=dict)
    by_path: dict[MailboxPath, PathRow] = field(default_factory=dict)
    listed: frozenset[UUID] = frozenset()
    sent: list[MailboxWrite] = field(default_factory=list)
    asked: list[UUID] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Iterable[Row], listed: frozenset[UUID] = frozenset()) -> "MailboxTables":
        rows = list(rows)
        return cls(
            {row.id: row for row in rows if isinstance(row, MailboxRow)},
            {row.path: row for row in rows if isinstance(row, PathRow)},
            listed,
        )

    def mailboxes(self) -> Iterator[MailboxRow]:
        yield from list(self.by_id.values())

    def paths(self) -> Iterator[PathRow]:
        yield from list(self.by_path.values())

    def look(self, ids: Iterable[UUID], paths: Iterable[MailboxPath]) -> Sides:
        mailboxes = {each: self.by_id.get(each) for each in ids}
        return Sides(mailboxes, {each: self.by_path.get(each) for each in paths})

    def with_messages(self, ids: Iterable[UUID]) -> frozenset[UUID]:
        self.asked += ids
        return self.listed & set(self.asked)

    def send(self, write: MailboxWrite) -> bool:
        """As a lightweight transaction: only if the row is as it was seen."""
        if not self._applies(write):
            return False
        self.sent.append(write)
        match write:
            case AddPath(path, id_, uidvalidity) | SetPathId(path, _, id_, uidvalidity):
                self.by_path[path] = PathRow(path, id_, uidvalidity, LATER)
            case DeletePath(path):
                del self.by_path[path]
            case AddMailbox(id_, path, uidvalidity):
                self.by_id[id_] = MailboxRow(id_, path, uidvalidity, LATER)
            case SetMailboxPath(id_, _, path):
                self.by_id[id_] = replace(self.by_id[id_], path=path, written=LATER)
            case DeleteMailbox(id_):
                del self.by_id[id_]
        return True

    def _applies(self, write: MailboxWrite) -> bool:
        match write:
            case AddPath(path):
                return path not in self.by_path
            case SetPathId(path, seen) | DeletePath(path, seen):
                return path in self.by_path and self.by_path[path].id == seen
            case AddMailbox(id_):
                return id_ not in self.by_id
            case SetMailboxPath(id_, before) | DeleteMailbox(id_, before):
                return id_ in self.by_id and self.by_id[id_].path == before
