"""What the mail server wanted a row to be, against what its faults made of it.

A pure model of one row: cells with write times, the newest wins, a delete hides what is
not newer. With it the expected ending of a fault follows from what happened later to the
same row, and needs no guess: a lost flag may be set again, a lost row may be expunged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

Cells = Mapping[str, Any]
"""The cells of a row, by column."""
RowKey = tuple[UUID, int | str]
"""The key of a row: (mailboxid, uid), or with `NO_UID` what a mailbox or a quota root has one of.

Of a right it is (mailboxid, name), of a reference (id of the attachment, id of the message).
"""
RowPlace = tuple[str, RowKey]
"""A row of one projection: the projection's name, and the row's key there."""
NO_UID = 0
MESSAGES = "messages"
"""The projection that lists the messages, by the name that the reconciler gives it."""


class Statement(StrEnum):
    """The statements that James sends to its projections: rows, flags, counters, mailboxes."""

    INSERT = "insert"
    FLAGS = "flags"
    REPLACE = "replace"
    """Of a set: what it has, and nothing else."""
    DELETE = "delete"
    COUNT = "count"
    PATH = "path"
    NO_PATH = "no_path"
    MAILBOX = "mailbox"
    NO_MAILBOX = "no_mailbox"


@dataclass(frozen=True, slots=True)
class ProjectionWrite:
    """One statement to messageidtable, or to another table that must follow a truth.

    `mailboxid` and `uid` are the two parts of its row's key, of whatever table.
    """

    statement: Statement
    operation: str
    messageid: UUID | None
    mailboxid: UUID
    uid: int | str
    cells: Mapping[str, object] = field(default_factory=dict)
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    projection: str = MESSAGES

    @property
    def row(self) -> RowKey:
        """Its key in the projection."""
        return (self.mailboxid, self.uid)

    @property
    def place(self) -> RowPlace:
        """The row among those of all projections."""
        return (self.projection, self.row)

    def values(self) -> dict[str, object]:
        """Each cell it writes, with user flags as one cell each (None: removed)."""
        elements: dict[str, object] = {f"{ELEMENT}{flag}": flag for flag in self.added}
        elements |= {f"{ELEMENT}{flag}": None for flag in self.removed}
        return {**self.cells, **elements}


@dataclass(frozen=True, slots=True)
class CounterWrite:
    """One statement to a counter table: what it adds to each counter of a mailbox or quota root."""

    projection: str
    operation: str
    messageid: UUID
    owner: UUID | str
    added: Mapping[str, int]
    statement: Statement = Statement.COUNT

    @property
    def row(self) -> RowKey:
        """Its key, as that of a row."""
        return counter_row(self.owner)

    @property
    def place(self) -> RowPlace:
        """The counters among those of all projections."""
        return (self.projection, self.row)


MailWrite = ProjectionWrite | CounterWrite
ELEMENT = "userflags."
"""What the name of a cell begins with that stands for one user flag, or one letter of a right."""


def counter_row(owner: UUID | str) -> RowKey:
    """The key of a mailbox's counters, or of a quota root's (which has a name, no id)."""
    return (owner if isinstance(owner, UUID) else uuid5(NAMESPACE_URL, owner), NO_UID)


def resulting_row(writes: Iterable[tuple[int, ProjectionWrite]]) -> dict[str, object]:
    """The live cells after writes with these write times; empty where there is no row."""
    cells: dict[str, tuple[int, object]] = {}
    deleted_at = -1
    for time, write in writes:
        if write.statement is Statement.DELETE:
            deleted_at = max(deleted_at, time)
        if write.statement is Statement.REPLACE:
            deleted_at = max(deleted_at, time - 1)
        for cell, value in write.values().items():
            if time >= cells.get(cell, (-1, None))[0]:
                cells[cell] = (time, value)
    return {
        cell: value
        for cell, (time, value) in cells.items()
        if time > deleted_at and value is not None
    }


@dataclass(slots=True)
class RowHistory:
    """All statements of one row: as meant, in order, and as applied."""

    meant: list[ProjectionWrite] = field(default_factory=list)
    applied: list[tuple[int, ProjectionWrite]] = field(default_factory=list)
    in_doubt: bool = False
    """A statement got no answer from the real server: nobody knows whether it was applied."""

    def meant_row(self) -> dict[str, object]:
        """The row as the truth has it: every statement applied once, in order."""
        return resulting_row(enumerate(self.meant))

    def applied_row(self) -> dict[str, object]:
        """The row as the projection has it, were there no reconciler."""
        return resulting_row(self.applied)
