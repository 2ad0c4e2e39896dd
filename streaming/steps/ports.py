"""What steps 3 to 7 read and write in James's tables; `streaming.tables.Tables` implements all.

Each protocol names only what its step calls, so that a test provides no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from reconcilers.declared.family import Projection
from reconcilers.declared.raw import RawCell, RawKey, RawRow
from reconcilers.declared.writes import Write
from reconcilers.words.model import KeyValue, Row, Slot, Value
from reconcilers.words.tokens import TokenRange

SourcedSlot = tuple[Slot, KeyValue | None]
"""A slot of a projection, and the source that its row names."""


class TruthTables(Protocol):
    """Bulk reads of the truth."""

    def truth_rows(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source; sources without any are left out."""


class ProjectionTables(Protocol):
    """Bulk reads of projections."""

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        """The projection's rows at these slots; absent ones are left out."""


class GroupTables(TruthTables, Protocol):
    """Reads of a whole group (a mailbox)."""

    def slots_of_group(self, projection: Projection, group: KeyValue) -> Iterable[SourcedSlot]:
        """Every slot of a group in the projection, with the source its row names."""

    def some_slots(
        self, projection: Projection, group: KeyValue, most: int, first: KeyValue | None
    ) -> Iterable[SourcedSlot]:
        """At most ``most`` slots from ``first`` of the second key column on; None: the last."""


class LookTables(GroupTables, ProjectionTables, Protocol):
    """The reads of step 3."""


class RawTables(Protocol):
    """The reads of a glance: undecoded rows by undecoded keys; a source is its bytes.

    Raises `Refused` if the columns do not have the types that a glance needs.
    """

    def require_comparable(self) -> None:
        """Raise `Refused` unless truth and listing send copied columns as the same bytes."""

    def truth(self, sources: Iterable[RawCell]) -> Iterable[RawRow]:
        """All truth rows of each source, in the columns of the family's `RawShape`."""

    def listing(self, keys: Iterable[RawKey]) -> Iterable[RawRow]:
        """The listing's rows at these keys, in the columns of the family's `RawShape`."""

    def index(self, index: Projection, keys: Iterable[RawKey]) -> Iterable[RawKey]:
        """Those of these keys at which the index has a row."""

    def collected(
        self, index: Projection, groups: Iterable[RawKey]
    ) -> Iterable[tuple[RawKey, frozenset[str]]]:
        """The elements that the rows of these groups have collected, by key; none if missing."""

    def decoded(self, column: str, cell: RawCell) -> Value:
        """The value of a cell of the truth."""


class RawScans(Protocol):
    """The reads of a sweep: whole tables by ranges of tokens, undecoded."""

    def pages(self, table: str, tokens: TokenRange, most: int) -> Iterator[list[RawRow]]:
        """All rows of a table in a range, in the order of their tokens; ``most`` in a page.

        A page is requested when the one before it is returned, or later: one page ahead at most.
        Rows have the columns of the table's `reconcilers.declared.scan.TableScan`.
        """

    def token(self, partition: RawCell) -> int:
        """The token of a partition key, of which these are the bytes."""


class ConfirmTables(ProjectionTables, Protocol):
    """The reads of step 5."""

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        """The projection's rows with write times (µs)."""

    def truth_with_times(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source with write times (µs), at the consistency of looks."""

    def truth_serially(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source at serial consistency, with write times (µs)."""


class WriteTables(Protocol):
    """The writes of repairs."""

    def apply(self, writes: Sequence[Write]) -> None:
        """Send the guarded writes of one row."""


class RepairTables(GroupTables, WriteTables, Protocol):
    """The reads and writes of step 6."""


class MessageTables(LookTables, ConfirmTables, RepairTables, Protocol):
    """All reads and writes of one family's steps."""
