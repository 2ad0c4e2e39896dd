"""Rows of `mailbox` and `mailboxpathv3`, and what one look has read of both. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from uuid import UUID

from reconcilers.words.model import Micros

MAILBOX, PATHS = "mailbox", "mailboxpathv3"
"""The two tables, as Cassandra names them."""
UIDS = "messagecounter"
"""The table in which a mailbox has a row once it has given a message a UID."""
ID_BYTES = 16


@dataclass(frozen=True, slots=True, order=True)
class MailboxPath:
    """A mailbox's path: the primary key of `mailboxpathv3`."""

    namespace: str
    user: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}:{self.user}:{self.name}"


@dataclass(frozen=True, slots=True)
class MailboxRow:
    """A row of `mailbox`. ``path`` is None if the row lacks a part of it.

    ``written`` (µs) has the write time of each cell: an equal row has not been written meanwhile.
    """

    id: UUID
    path: MailboxPath | None
    uidvalidity: int | None
    written: tuple[Micros | None, ...] = ()


@dataclass(frozen=True, slots=True)
class PathRow:
    """A row of `mailboxpathv3`. ``id`` is None if the row lacks it; ``written`` is in µs."""

    path: MailboxPath
    id: UUID | None
    uidvalidity: int | None
    written: tuple[Micros | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Sides:
    """What was read at some ids and paths, the mailboxes first; a row that is missing is None."""

    mailboxes: Mapping[UUID, MailboxRow | None]
    paths: Mapping[MailboxPath, PathRow | None]

    def named(self) -> tuple[frozenset[UUID], frozenset[MailboxPath]]:
        """The keys that were read, and those that the rows name."""
        ids = {row.id for row in self.paths.values() if row is not None and row.id is not None}
        rows = (row for row in self.mailboxes.values() if row is not None)
        paths = {row.path for row in rows if row.path is not None}
        return frozenset(ids | self.mailboxes.keys()), frozenset(paths | self.paths.keys())


class Unpaired:
    """Finds the rows without a counterpart, when all of `mailbox` comes first, then all paths.

    It holds about 100 bytes for each mailbox until the paths have been added.
    """

    def __init__(self) -> None:
        self._pairs = set[bytes]()
        self._ids = set[UUID]()
        self._paths = set[MailboxPath]()

    def add_mailbox(self, row: MailboxRow) -> None:
        """Take in a row of `mailbox`."""
        if row.path is None:
            self._ids.add(row.id)
        else:
            self._pairs.add(_pair(row.id, row.path))

    def add_path(self, row: PathRow) -> None:
        """Take in a row of `mailboxpathv3`."""
        pair = None if row.id is None else _pair(row.id, row.path)
        if pair in self._pairs:
            self._pairs.discard(pair)
            return
        self._paths.add(row.path)
        if row.id is not None:
            self._ids.add(row.id)

    def __len__(self) -> int:
        """The most keys that are left to read."""
        return len(self._pairs) + len(self._paths) + len(self._ids)

    def ids(self) -> frozenset[UUID]:
        """The ids to read, of both sides. A row that was written meanwhile may be among them."""
        return frozenset(self._ids) | {UUID(bytes=each[:ID_BYTES]) for each in self._pairs}

    def paths(self) -> frozenset[MailboxPath]:
        """The paths to read; those of `mailbox` come with its rows."""
        return frozenset(self._paths)


def _pair(id_: UUID, path: MailboxPath) -> bytes:
    text = "\0".join((path.namespace, path.user, path.name))
    return id_.bytes + blake2b(text.encode(), digest_size=8).digest()
