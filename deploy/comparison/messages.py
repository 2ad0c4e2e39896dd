"""What a difference is, and the comparison of a message's row in the truth and in its projection.

Nothing here or in what is built on it (full_comparison.py) is shared with the reconciler.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from cassandra.util import SortedSet

from deploy.mailserver.history import MESSAGES, Cells, RowKey, RowPlace

NEEDED_IN_TRUTH = (
    "modseq",
    "internaldate",
    "bodystartoctet",
    "fullcontentoctets",
    "headercontent",
)
"""A truth row without one of these is incomplete, so says nothing of its projection."""


class DifferenceKind(StrEnum):
    """How truth and projection disagree on one row, or on one counter."""

    MISSING = "missing_row"
    EXTRA = "extra_row"
    CELLS = "differing_cells"
    INCOMPLETE_TRUTH = "incomplete_truth_row"
    DUPLICATE_UID = "duplicate_uid"
    WRONG_COUNTER = "wrong_counter"
    UNREADABLE_LIST = "unreadable_list"
    MAILBOX_CONFLICT = "mailbox_conflict"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference. `mailboxid` and `uid` are the two parts of the row's key in any projection.

    `columns` names the cells that differ, or are absent from the truth.

    Of counters `columns` tells what they are, and `owner` whose.
    """

    kind: DifferenceKind
    mailboxid: UUID
    uid: int | str
    messageids: tuple[UUID, ...] = ()
    columns: tuple[str, ...] = ()
    projection: str = MESSAGES
    owner: str = ""

    @property
    def row(self) -> RowKey:
        """Its key in the projection."""
        return (self.mailboxid, self.uid)

    @property
    def place(self) -> RowPlace:
        """The row among those of all projections."""
        return (self.projection, self.row)

    def __str__(self) -> str:
        columns = f" in {', '.join(self.columns)}" if self.columns else ""
        messages = ", ".join(str(messageid) for messageid in self.messageids)
        where = f"mailbox {self.mailboxid}, uid {self.uid}, message {messages or 'unknown'}"
        return f"{self.projection}: {self.kind}{columns}: {self.owner or where}"


def compare_row(claims: list[Cells], projected: Cells | None) -> Iterator[Mismatch]:
    """Compare what the truth has at one (mailboxid, uid) with what the projection has."""
    rows = [*claims, projected] if projected else claims
    key = (rows[0]["mailboxid"], rows[0]["uid"])
    messages = tuple(sorted({row["messageid"] for row in rows if row["messageid"]}))
    if len(claims) > 1:
        yield Mismatch(DifferenceKind.DUPLICATE_UID, *key, messages)
    elif not claims:
        yield Mismatch(DifferenceKind.EXTRA, *key, messages)
    elif absent := absent_cells(claims[0]):
        yield Mismatch(DifferenceKind.INCOMPLETE_TRUTH, *key, messages, absent)
    elif projected is None:
        yield Mismatch(DifferenceKind.MISSING, *key, messages)
    elif columns := differing_columns(claims[0], projected):
        yield Mismatch(DifferenceKind.CELLS, *key, messages, columns)


def absent_cells(truth: Cells) -> tuple[str, ...]:
    """The cells whose absence makes a truth row incomplete; columns it does not have are none."""
    return tuple(name for name in NEEDED_IN_TRUTH if name in truth and truth[name] is None)


def differing_columns(truth: Cells, projected: Cells) -> tuple[str, ...]:
    """Columns that both tables have and that differ; an empty set is the same as null."""
    shared = sorted(truth.keys() & projected.keys())
    return tuple(name for name in shared if _cell(truth[name]) != _cell(projected[name]))


def _cell(value: Any) -> Any:
    if isinstance(value, set | SortedSet):
        return frozenset(value) or None
    return value
