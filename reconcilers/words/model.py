"""The values of the product, frozen.

Times are microseconds since the epoch (``int``), as in Cassandra's write times; durations are
microseconds too. A cell value of ``None`` is Cassandra's null. A set column without elements is an
empty ``frozenset``, never null.
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
    {
        "imapuidtable",
        "acl",
        "eventstore",
        "mailbox",
        "mailboxpathv3",
        "messagecounter",
        "modseq",
        "messagev2",
        "messagev3",
    }
)
"""Tables that our writes may never name (promise 1): truths and James's allocators.

`mailbox` and `mailboxpathv3` have writes of their own, `reconcilers.mailboxes.plan`, which are sent
offline only.
"""


KeyValue = UUID | int | str
"""A part of a key, as a family declares it (`reconcilers.words.key`)."""


def number_of(value: KeyValue) -> int:
    """A number for a part of a key, equal in every process (Python seeds the hash of a text)."""
    if isinstance(value, UUID):
        return value.int
    return value if isinstance(value, int) else zlib.crc32(value.encode())


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Slot:
    """The key of one projection row; without parts the whole table (`words.key.WHOLE_TABLE`)."""

    key: tuple[KeyValue, ...]
    _hash: int = field(repr=False)

    def __init__(self, *key: KeyValue) -> None:
        numbers = [
            part.int if isinstance(part, UUID) else part if type(part) is int else number_of(part)
            for part in key
        ]
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "_hash", hash(tuple(numbers)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slot) and self._hash == other._hash and self.key == other.key

    def __lt__(self, other: Slot) -> bool:
        return self.key < other.key

    @property
    def group(self) -> KeyValue:
        """The first part of the key: a mailbox, for example."""
        return self.key[0]


ProjectionSlot = tuple[str, Slot]
"""A projection's name, and a slot of it."""

EXPIRED = "expired"
"""The table of a "delete" that is the end of a cell's TTL. No event reports it."""

NO_PROJECTION = ""
"""The projection of a published key that belongs to no finding."""

_AS_NUMBER = {"published": "bigint"}
_AS_TEXT = {"published": "text"}


@dataclass(frozen=True, slots=True)
class Wake:
    """A key that may have changed. A part that the event does not carry is None.

    ``source`` is the truth partition (a message), None if unknown. ``oldest`` is the write time of
    the oldest event behind the wake, and ``changes`` is the number of events, repeated ones
    included. ``from_truth``: an event of the truth named the key. For a delete, ``deleted_from`` is
    its table and ``deleted_at`` its write time; otherwise both are None. ``expires_at`` is when the
    last of the written cells expires, None without a TTL. Times are µs.

    ``looked_again``: the key came through the suspects topic, not from a user's change.
    ``suspected`` is then what was found at the last look, for the finding of ``projection``. A key
    published without a projection belongs to the family's first; with `NO_PROJECTION` only a
    difference is confirmed.

    The settled columns, the worker's columns and the published ones derive from these fields
    (`WAKE_FIELDS`); ``published`` in the metadata is the CQL type.
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
        """Whether every part of its key is known, so that the key names a slot."""
        return all(part is not None for part in self.key)

    @property
    def slot(self) -> Slot | None:
        """The slot that it names, None unless every part of the key is known."""
        parts = [part for part in self.key if part is not None]
        return Slot(*parts) if len(parts) == len(self.key) else None

    def covers(self, slot: Slot) -> bool:
        """Whether it may mean this slot: every known part is equal to the slot's."""
        pairs = zip(self.key, slot.key, strict=True)
        return all(part is None or part == its for part, its in pairs)


WAKE_FIELDS = tuple(each.name for each in fields(Wake) if each.name not in {"key", "source"})
"""The fields of a wake, without key and source: the family names those."""
PUBLISHED: Mapping[str, str] = {
    each.name: each.metadata["published"] for each in fields(Wake) if each.metadata
}
"""The fields of a wake that go through the suspects topic, with their CQL types."""


def look_again(
    slot: Slot,
    projection: str,
    source: KeyValue | None = None,
    oldest: Micros | None = None,
    suspected: Kind | None = None,
) -> Wake:
    """A wake that publishes a slot for a look one delay later; ``suspected`` was found now."""
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
    """A slot for steps 5 and 6: its two sides differ, or it is looked at again.

    ``projection`` is the one that differs. ``kind`` is what the look found, None if both sides
    agree. ``columns`` are those that differ or that the truth lacks. ``sources`` are those that may
    claim the slot. ``oldest`` is the write time (µs) of the oldest change behind it. ``suspected``
    is what an earlier look found, at least one delay ago. ``unreadable`` is why the server could
    not read it.
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
        """A wake that publishes the slot for a look one delay later; it carries ``suspected``.

        It names one of the sources. Lineage or the row may name others.
        """
        source = min(self.sources, key=str, default=None)
        return look_again(self.slot, self.projection, source, self.oldest, suspected)


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it was read: cells by column, and write times (µs) by column if they were read."""

    cells: Mapping[str, Value]
    written: Mapping[str, Micros] = field(default_factory=dict)

    def get(self, column: str) -> Value:
        """The cell, None if it is null or if the table has no such column."""
        return self.cells.get(column)

    @property
    def newest(self) -> Micros | None:
        """The highest write time (µs) of any cell, None if no write time is known."""
        return max(self.written.values(), default=None)


class Kind(StrEnum):
    """The class of a finding. The first three and a drift are repaired; the others are reported."""

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
    MISSING_CONTENT = "missing_content"
    LEFT_OVER = "left_over"
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
    """The result of step 4 for one slot: the kind, and the columns that differ or are null."""

    kind: Kind
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Consistent:
    """Both sides agree."""


@dataclass(frozen=True, slots=True)
class LookAgain:
    """It is too early to judge. The key is published and comes back one delay later."""

    difference: Difference
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """A difference that the product does not repair; ``sentence`` says what and why."""

    kind: Kind
    sentence: str


@dataclass(frozen=True, slots=True)
class Repair:
    """A repairable difference; ``rests_on_memory``: an event still to come could change it."""

    difference: Difference
    sentence: str
    rests_on_memory: bool = False


Verdict = Consistent | LookAgain | Report | Repair


def kind_found(verdict: Verdict) -> Kind | None:
    """The kind of a difference that may still be repaired, None for the other verdicts."""
    return verdict.difference.kind if isinstance(verdict, LookAgain | Repair) else None
