"""The words of the product, as frozen values.

Times are microseconds since the epoch (``int``), as Cassandra keeps write times; durations are
microseconds too. ``None`` as a cell value is Cassandra's null; a set column without elements is an
empty ``frozenset`` here, never null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

Value = None | bool | int | str | UUID | datetime | frozenset[str]
Micros = int

NEVER_WRITTEN = frozenset(
    {"imapuidtable", "acl", "eventstore", "messagecounter", "modseq", "messagev2", "messagev3"}
)
"""Tables that no write of ours may ever name (promise 1): truths and James's allocators."""


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """The place of one projection row: a UID in a mailbox."""

    mailboxid: UUID
    uid: int
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Hash it once: a look does so with each slot many times."""
        object.__setattr__(self, "_hash", hash((self.mailboxid.int, self.uid)))

    def __hash__(self) -> int:
        """Within one process and the next: a number's hash is not seeded."""
        return self._hash


NO_PROJECTION = ""
"""Of no finding: a key that is only looked at later."""


@dataclass(frozen=True, slots=True)
class Wake:
    """A key that may have changed. Any id an event does not carry is None.

    ``deleted_at`` is the write time of a delete-shaped event and ``deleted_from`` its table; both
    None otherwise. ``oldest`` and ``newest`` are the write times of the events behind it.
    ``from_truth`` tells that an event of the truth named the key, ``looked_again`` that it came
    back through the suspects topic instead of from a user's change, where ``suspected`` is what was
    found then, for the finding of ``projection`` (published without one, it comes back as of the
    family's first; with `NO_PROJECTION`, only what differs is confirmed). ``expires_at`` is when
    the last of the written cells expires, None without a TTL. ``changes`` is how many events it
    stands for, some of them sent twice.
    """

    mailboxid: UUID | None
    messageid: UUID | None
    uid: int | None
    oldest: Micros | None = None
    newest: Micros | None = None
    deleted_from: str | None = None
    deleted_at: Micros | None = None
    from_truth: bool = False
    looked_again: bool = False
    expires_at: Micros | None = None
    projection: str | None = None
    changes: int = 1
    suspected: Kind | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A slot that steps 5 and 6 must settle: both sides differ, or it has been looked at again.

    ``projection`` names the one that differs.
    ``kind`` is what the look found, None when both sides agreed. ``messageids`` are the messages
    that may claim the slot; ``oldest`` is the write time (µs) of the oldest change behind it.
    ``suspected`` is what an earlier look, at least one delay ago, found here.
    """

    slot: Slot
    messageids: frozenset[UUID]
    kind: Kind | None
    projection: str
    oldest: Micros | None = None
    looked_again: bool = False
    suspected: Kind | None = None

    def wake(self, suspected: Kind | None) -> Wake:
        """The key, to be published and looked at again one delay later, with what was found now."""
        ids = self.messageids
        return Wake(
            mailboxid=self.slot.mailboxid,
            messageid=next(iter(ids)) if len(ids) == 1 else None,
            uid=self.slot.uid,
            oldest=self.oldest,
            looked_again=True,
            projection=self.projection,
            suspected=suspected,
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One row as read: cells by column, and their write times where those were read."""

    cells: Mapping[str, Value]
    written: Mapping[str, Micros] = field(default_factory=dict)

    def get(self, column: str) -> Value:
        """The cell, None when null or when the table has no such column."""
        return self.cells.get(column)

    @property
    def newest(self) -> Micros | None:
        """Highest write time of any cell, None when no cell has one (or none was read)."""
        return max(self.written.values(), default=None)


class Kind(StrEnum):
    """What is wrong. The first three and a drift are repaired; the others are only reported."""

    MISSING_ROW = "missing_row"
    DIFFERING_CELLS = "differing_cells"
    EXTRA_ROW = "extra_row"
    INCOMPLETE_TRUTH_ROW = "incomplete_truth_row"
    DUPLICATE_UID = "duplicate_uid"
    SHADOWED_DELETE = "shadowed_delete"
    UNRESOLVED = "unresolved"
    AMBIGUOUS_RANGE_DELETE = "ambiguous_range_delete"
    FUTURE_WRITE_TIME = "future_write_time"
    UNGUARDABLE = "unguardable"
    MAILBOX_WITHOUT_TRUTH = "mailbox_without_truth"
    COUNTER_DRIFT = "counter_drift"
    LARGE_CORRECTION = "large_correction"
    TABLE_REFUSES = "table_refuses"
    TABLE_UNREADABLE = "table_unreadable"
    UNUSED_FLAGS = "unused_flags"


ACCEPTABLE = frozenset(
    {
        Kind.AMBIGUOUS_RANGE_DELETE,
        Kind.SHADOWED_DELETE,
        Kind.MAILBOX_WITHOUT_TRUTH,
        Kind.LARGE_CORRECTION,
    }
)
"""The classes that a person may decide with ``findings --accept``."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Step 4's answer for one slot: the kind, and the columns that differ (if any)."""

    kind: Kind
    columns: tuple[str, ...] = ()


# --- verdicts: step 5's answer


@dataclass(frozen=True, slots=True)
class Consistent:
    """Both sides agree."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Not to be judged yet; the key is published again and comes back one delay later."""

    difference: Difference
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """Something is wrong that is not ours to write; ``sentence`` says what and why."""

    kind: Kind
    sentence: str


@dataclass(frozen=True, slots=True)
class Repair:
    """Something is wrong that may be repaired from what was seen."""

    difference: Difference
    sentence: str


Verdict = Consistent | LookAgain | Report | Repair


def kind_found(verdict: Verdict) -> Kind | None:
    """What differs and may still be repaired, None when nothing does or it is only reported."""
    return verdict.difference.kind if isinstance(verdict, LookAgain | Repair) else None
