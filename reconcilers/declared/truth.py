"""The declaration of a table that holds the truth. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from reconcilers.words.errors import MalformedContent
from reconcilers.words.key import TIMED, KeyColumn
from reconcilers.words.model import KeyValue, Row, Slot

PARTS = (UUID, int, str)
"""The Python types of a part of a key."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """Stored content of a source that cannot be understood, and why."""

    reason: str


Derived = tuple[Row, ...] | Malformed
"""The truth rows of one source."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the truth rows of a source follow from the rows of its partition.

    ``key`` are the partition's clustering columns and ``reads`` the further columns that are read.
    Those in ``as_json`` are read as JSON, because they have user-defined types; they have no write
    time. ``gives`` are the columns of a truth row beside the slot's. ``rows`` is pure. A truth
    row's write times are those of what it was derived from. ``shared``: the partition key is a text
    that names other things, too; a source is named by its text, and other partitions are left out.
    ``listed_in`` are the columns that truth rows come from: an insert or update that sets none of
    them leaves the rows as they were, and wakes no key. Empty: every event wakes its source.
    """

    key: tuple[str, ...]
    reads: tuple[str, ...]
    gives: tuple[str, ...]
    rows: Callable[[KeyValue, Sequence[Row]], Derived]
    shared: bool = False
    as_json: frozenset[str] = frozenset()
    listed_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Owner:
    """The table with what a source or a slot belongs to: the row whose key is its id.

    ``label`` is its name in sentences. Without that row, and without truth, a source is gone.
    """

    table: str
    key: str
    label: str


@dataclass(frozen=True, slots=True)
class TruthTable:
    """A table that holds the truth.

    ``source`` is its partition key (a message). ``slot`` are the columns that lead to the
    projection rows. A row without one of the ``required`` columns is incomplete: it is reported and
    never copied. Counters count it if it has the ``summed`` columns. ``contents`` are the tables
    with a source's content by its id, older ones first; an ``owner`` stands for content. ``sets``
    are its set columns; see `bind`. ``derive``: its truth rows are derived from its own; ``slot``
    and ``required`` are then columns of the derived ones. None: they are its own rows. ``older``
    are tables with the same columns in which an older James stored sources; a source without rows
    in ``table`` is read there. ``newer``: the table in which a newer James stores sources. This one
    has only an old copy of a source with rows there, so that it is `MalformedContent`. ``users``
    has a row for each slot (of one part) that a user owns, and that needs no source. ``names_all``:
    its rows name each slot that ever was, so that a newer row elsewhere shows that it lost some.
    """

    table: str
    source: KeyColumn
    slot: tuple[str, ...]
    required: tuple[str, ...] = ()
    summed: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    sets: frozenset[str] = frozenset()
    derive: Derivation | None = None
    owner: Owner | None = None
    older: tuple[str, ...] = ()
    newer: TruthTable | None = None
    users: Owner | None = None
    names_all: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        """All its tables, the newest last."""
        return (*self.older, self.table)

    @property
    def kept_in(self) -> tuple[tuple[str, str], ...]:
        """The tables that show that a source is not gone, each with the column of its id.

        The owner is the first, because James writes content before it.
        """
        owner = () if self.owner is None else ((self.owner.table, self.owner.key),)
        return (*owner, *((each, self.source.name) for each in self.contents))

    def rows_of(self, source: KeyValue, stored: Sequence[Row]) -> tuple[Row, ...]:
        """The truth rows of a source, given all rows of its partition; or `MalformedContent`."""
        derive = self.derive
        if derive is None:
            return tuple(stored)
        rows = derive.rows(source, stored)
        if isinstance(rows, Malformed):
            raise MalformedContent(f"{self.table}: {rows.reason}")
        return rows

    def rows_of_each(
        self, stored: Mapping[KeyValue, Sequence[Row]], moved: Collection[KeyValue] = ()
    ) -> dict[KeyValue, tuple[Row, ...]]:
        """The truth rows of sources; those without any are left out.

        ``moved`` are sources with rows in ``newer``. Raises `MalformedContent`, also if there are.
        """
        if self.newer is not None and moved:
            raise MalformedContent(
                f"{self.newer.table} has a newer {self.source.label} of {min(map(str, moved))} than"
                f" {self.table}: set the table that James writes (see `reconcile doctor`)"
            )
        found = {source: self.rows_of(source, rows) for source, rows in stored.items()}
        return {source: rows for source, rows in found.items() if rows}

    @property
    def as_json(self) -> frozenset[str]:
        """The columns that are read as JSON."""
        return frozenset() if self.derive is None else self.derive.as_json

    @property
    def listed_in(self) -> tuple[str, ...]:
        """The columns that derived rows come from, if other statements change no row."""
        return () if self.derive is None else self.derive.listed_in

    @property
    def owners(self) -> tuple[str, ...]:
        """The tables with the owners of sources and slots."""
        return tuple(each.table for each in (self.owner, self.users) if each is not None)

    @property
    def is_shared(self) -> bool:
        """Whether its partitions are named by texts, and may be of other things than sources."""
        return self.derive is not None and self.derive.shared

    def partition_of(self, source: KeyValue) -> KeyValue:
        """The partition key of a source, as this table stores it."""
        return str(source) if self.is_shared else source

    @property
    def stored_key(self) -> tuple[str, ...]:
        """The columns that tell the rows of a partition apart, in the table itself."""
        return self.slot if self.derive is None else self.derive.key

    @property
    def named_key(self) -> tuple[str | None, ...]:
        """The columns of an event's key that lead to the slot; None for a derived part."""
        derived = self.derive is not None
        return tuple(None if derived and each != self.source.name else each for each in self.slot)

    def gives(self, stored: Collection[str]) -> frozenset[str]:
        """The columns of its truth rows, if the table has these columns."""
        if self.derive is None:
            return frozenset(stored)
        return frozenset({self.source.name, *self.slot, *self.derive.gives})

    def slot_of(self, row: Row) -> Slot:
        """The slot of a row of this table. Raises ValueError if a part of the key is missing."""
        cells = [row.cells.get(column) for column in self.slot]
        parts = [cell for cell in cells if isinstance(cell, PARTS)]
        if len(parts) < len(cells):
            raise ValueError(f"a row of {self.table} without {', '.join(self.slot)}")
        return Slot(*parts)


def source_of(truth: TruthTable, partition: KeyValue) -> KeyValue | None:
    """The source whose partition has this key, None if it is the partition of another thing."""
    if not truth.is_shared:
        return partition
    try:
        source = truth.source.value(partition)
    except ValueError:
        return None
    if truth.source.type in TIMED and not (isinstance(source, UUID) and source.version == 1):
        return None
    return source if truth.partition_of(source) == partition else None


def contents_in(truth: TruthTable, schema: Collection[str]) -> tuple[str, ...]:
    """The declared content tables of a keyspace; none if a newer James has an undeclared one."""
    if unknown_contents(truth, schema):
        return ()
    return tuple(table for table in truth.contents if table in schema)


def unknown_contents(truth: TruthTable, schema: Collection[str]) -> tuple[str, ...]:
    """Tables that are named like content tables, with another number, and are not declared."""
    stems = {table.rstrip("0123456789") for table in truth.contents}
    return tuple(
        table
        for table in sorted(set(schema) - set(truth.contents))
        if any(table.startswith(stem) for stem in stems)
    )
