"""What steps 3 to 7 ask of James's tables; `streaming.tables.Tables` is the real one of each.

Each step names only what it calls, so that a test gives it no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from reconcilers.declared.family import Projection
from reconcilers.declared.raw import RawCell, RawKey, RawRow
from reconcilers.declared.writes import Write
from reconcilers.words.model import KeyValue, Row, Slot, Value
from reconcilers.words.tokens import TokenRange

Listed = tuple[Slot, KeyValue | None]
"""A slot of a projection, and the source that its row names."""


class TruthTables(Protocol):
    """The truth, as it is read in bulk."""

    def truth_rows(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source; sources without any are left out."""


class ProjectionTables(Protocol):
    """Projections, as they are read in bulk."""

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        """The projection's rows at these slots; absent ones are left out."""


class GroupTables(TruthTables, Protocol):
    """What is read of a whole group (a mailbox)."""

    def slots_of_group(self, projection: Projection, group: KeyValue) -> Iterable[Listed]:
        """Every slot of a group in the projection, with the source its row names."""

    def some_slots(
        self, projection: Projection, group: KeyValue, most: int, first: KeyValue | None
    ) -> Iterable[Listed]:
        """So many of them, from this value of the second key column on; None: the last ones."""


class LookTables(GroupTables, ProjectionTables, Protocol):
    """What step 3 reads."""


class RawTables(Protocol):
    """What a glance reads: rows undecoded, by undecoded keys. Of a source that is its own bytes.

    Raises `Refused` where the columns are not, or no more, of the types that a glance needs.
    """

    def require_comparable(self) -> None:
        """Raise `Refused` unless what is copied is sent alike by the truth and the listing."""

    def truth(self, sources: Iterable[RawCell]) -> Iterable[RawRow]:
        """All truth rows of each source, in the columns of the family's `RawShape`."""

    def listing(self, keys: Iterable[RawKey]) -> Iterable[RawRow]:
        """The listing's rows at these keys, in the columns of the family's `RawShape`."""

    def index(self, index: Projection, keys: Iterable[RawKey]) -> Iterable[RawKey]:
        """Those of these keys at which an index has a row."""

    def collected(
        self, index: Projection, groups: Iterable[RawKey]
    ) -> Iterable[tuple[RawKey, frozenset[str]]]:
        """What the rows of these groups have collected, by their key; none of a missing row."""

    def decoded(self, column: str, cell: RawCell) -> Value:
        """The value of a cell of the truth."""


class RawScans(Protocol):
    """What a sweep reads: whole tables by ranges of tokens, undecoded."""

    def pages(self, table: str, tokens: TokenRange) -> Iterator[list[RawRow]]:
        """All rows of a table in a range, in the order of their tokens.

        Of the truth and the listing in the columns of the family's `RawShape`, of an index its key.
        """

    def token(self, partition: RawCell) -> int:
        """The token of a partition whose key is of one column."""


class ConfirmTables(ProjectionTables, Protocol):
    """What step 5 reads."""

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        """The projection's rows with write times (µs)."""

    def truth_with_times(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source with write times (µs), at the consistency of looks."""

    def truth_serially(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source at serial consistency, with write times (µs)."""


class WriteTables(Protocol):
    """Where repairs go."""

    def apply(self, writes: Sequence[Write]) -> None:
        """Send the guarded writes of one row."""


class RepairTables(GroupTables, WriteTables, Protocol):
    """What step 6 needs."""


class MessageTables(LookTables, ConfirmTables, RepairTables, Protocol):
    """What one family's steps need together."""
