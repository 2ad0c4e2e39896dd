"""The words of the product, as frozen values.

Times are microseconds since the epoch (``int``), as Cassandra keeps write times; durations are
microseconds too. ``None`` as a cell value is Cassandra's null; a set column without elements is an
empty ``frozenset`` here, never null.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from uuid import UUID

from reconcilers.words.millis import Millis

Micros = int
SECOND: Micros = 1_000_000

Value = None | bool | int | str | UUID | Millis | frozenset[str]

NEVER_WRITTEN = frozenset(
    {"imapuidtable", "acl", "eventstore", "messagecounter", "modseq", "messagev2", "messagev3"}
)
"""Tables that no write of ours may ever name (promise 1): truths and James's allocators."""


KeyValue = UUID | int | str
"""A part of a key: whatever a family declares (`reconcilers.words.key`)."""


def number_of(value: KeyValue) -> int:
    """A number for a part of a key, the same in every process: a text's own hash is seeded."""
    if isinstance(value, UUID):
        return value.int
    return value if isinstance(value, int) else zlib.crc32(value.encode())


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Slot:
    """The place of one projection row: its key, as its family declares it.

    Without any part it stands for the whole table (`reconcilers.words.key.WHOLE_TABLE`).
    """

    key: tuple[KeyValue, ...]
    _hash: int = field(repr=False)

    def __init__(self, *key: KeyValue) -> None:
        """Hash it once: a look does so with each slot many times."""
        numbers = [
            part.int if isinstance(part, UUID) else part if type(part) is int else number_of(part)
            for part in key
        ]
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "_hash", hash(tuple(numbers)))

    def __hash__(self) -> int:
        """Within one process and the next: a number's hash is not seeded."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Slots are what their keys are."""
        return isinstance(other, Slot) and self._hash == other._hash and self.key == other.key

    def __lt__(self, other: Slot) -> bool:
        """In the order of their keys; of one family's slots only."""
        return self.key < other.key

    @property
    def group(self) -> KeyValue:
        """The part by which work is shared and projections are partitioned: a mailbox, say."""
        return self.key[0]


EXPIRED = "expired"
"""Stands for the table of a delete where the TTL of a cell has ended: of that there is no event."""

NO_PROJECTION = ""
"""Of no finding: a key that is only looked at later."""

_AS_NUMBER = {"published": "bigint"}
_AS_TEXT = {"published": "text"}


@dataclass(frozen=True, slots=True)
class Wake:
    """A key that may have changed. Any part of it that an event does not carry is None.

    ``source`` is the truth's partition that it came from (a message), None where that is not known.
    ``deleted_at`` is the write time of a delete-shaped event and ``deleted_from`` its table; both
    None otherwise. ``oldest`` is the write time of the oldest event behind it. ``from_truth`` tells
    that an event of the truth named the key, ``looked_again`` that it came back through the
    suspects topic instead of from a user's change, where ``suspected`` is what was
    found then, for the finding of ``projection`` (published without one, it comes back as of the
    family's first; with `NO_PROJECTION`, only what differs is confirmed). ``expires_at`` is when
    the last of the written cells expires, None without a TTL. ``changes`` is how many events it
    stands for, some of them sent twice.

    The one declaration of its shape: the settled columns, what a worker makes of them and what is
    published (``published`` names the CQL type) follow from these fields, see `WAKE_FIELDS`.
    """

    key: tuple[KeyValue | None, ...]
    source: KeyValue | None
    oldest: Micros | None = field(default=None, metadata=_AS_NUMBER)
    deleted_from: str | None = field(default=None, metadata=_AS_TEXT)
    deleted_at: Micros | None = field(default=None, metadata=_AS_NUMBER)
    from_truth: bool = False
    looked_again: bool = False
    expires_at: Micros | None = None
    projection: str | None = field(default=None, metadata=_AS_TEXT)
    changes: int = 1
    suspected: Kind | None = field(default=None, metadata=_AS_TEXT)

    @property
    def group(self) -> KeyValue | None:
        """The first part of its key."""
        return self.key[0]

    @property
    def whole(self) -> bool:
        """Whether all of its key is known, so that it names a slot."""
        return all(part is not None for part in self.key)

    @property
    def slot(self) -> Slot | None:
        """The slot that it names, None unless the whole key is known."""
        parts = [part for part in self.key if part is not None]
        return Slot(*parts) if len(parts) == len(self.key) else None

    def covers(self, slot: Slot) -> bool:
        """Whether it may mean this slot: all parts that are known are the slot's."""
        pairs = zip(self.key, slot.key, strict=True)
        return all(part is None or part == its for part, its in pairs)


WAKE_FIELDS = tuple(each.name for each in fields(Wake) if each.name not in {"key", "source"})
"""What a wake tells besides its key and source, which are named as its family declares them."""
PUBLISHED: Mapping[str, str] = {
    each.name: each.metadata["published"] for each in fields(Wake) if each.metadata
}
"""Of those, what goes through the suspects topic, with its CQL type."""


def look_again(
    slot: Slot,
    projection: str,
    source: KeyValue | None = None,
    oldest: Micros | None = None,
    suspected: Kind | None = None,
) -> Wake:
    """A slot's key, to be published and looked at one delay later, with what was found now."""
    return Wake(
        slot.key,
        source,
        oldest=oldest,
        looked_again=True,
        projection=projection,
        suspected=suspected,
    )


@dataclass(frozen=True, slots=True)
class Suspect:
    """A slot that steps 5 and 6 must settle: both sides differ, or it has been looked at again.

    ``projection`` names the one that differs.
    ``kind`` is what the look found, None when both sides agreed; ``columns`` those in which the
    sides differ, or that the truth lacks. ``sources`` are those that may claim the slot; ``oldest``
    is the write time (µs) of the oldest change behind it. ``suspected`` is what an earlier look, at
    least one delay ago, found here; ``unreadable`` why the server would not read it.
    """

    slot: Slot
    sources: frozenset[KeyValue]
    kind: Kind | None
    projection: str
    oldest: Micros | None = None
    looked_again: bool = False
    suspected: Kind | None = None
    unreadable: str | None = None
    columns: tuple[str, ...] = ()

    def wake(self, suspected: Kind | None) -> Wake:
        """The key, to be published and looked at again one delay later, with what was found now."""
        source = next(iter(self.sources)) if len(self.sources) == 1 else None
        return look_again(self.slot, self.projection, source, self.oldest, suspected)


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
    INCOMPLETE_IN_BOTH = "incomplete_in_both"
    DUPLICATE_UID = "duplicate_uid"
    SHADOWED_DELETE = "shadowed_delete"
    UNRESOLVED = "unresolved"
    AMBIGUOUS_RANGE_DELETE = "ambiguous_range_delete"
    ABSENT_WITHOUT_DELETE = "absent_without_delete"
    CONTENT_LOST = "content_lost"
    FUTURE_WRITE_TIME = "future_write_time"
    UNGUARDABLE = "unguardable"
    MAILBOX_WITHOUT_TRUTH = "mailbox_without_truth"
    TRUTH_LOST_ROWS = "truth_lost_rows"
    PAST_ROWS = "past_rows"
    SYSTEMATIC = "systematic"
    COUNTER_DRIFT = "counter_drift"
    LARGE_CORRECTION = "large_correction"
    TABLE_REFUSES = "table_refuses"
    TABLE_UNREADABLE = "table_unreadable"
    UNREADABLE = "unreadable"
    UNUSED_FLAGS = "unused_flags"


@dataclass(frozen=True, slots=True)
class Difference:
    """Step 4's answer for one slot: the kind, and the columns that differ, or are null (if any)."""

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
    """Something is wrong that may be repaired from what was seen.

    ``rests_on_memory``: what has happened and was not heard of yet could change that.
    """

    difference: Difference
    sentence: str
    rests_on_memory: bool = False


Verdict = Consistent | LookAgain | Report | Repair


def kind_found(verdict: Verdict) -> Kind | None:
    """What differs and may still be repaired, None when nothing does or it is only reported."""
    return verdict.difference.kind if isinstance(verdict, LookAgain | Repair) else None
