"""The types of a declaration: a family (a truth and its key) and its projections. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from reconcilers.declared.conversion import Conversions
from reconcilers.declared.tally import Tally
from reconcilers.declared.truth import PARTS, TruthTable, contents_in, unknown_contents
from reconcilers.words.errors import Misconfigured, NotGuarded
from reconcilers.words.key import KeyColumn
from reconcilers.words.model import NEVER_WRITTEN, WAKE_FIELDS, KeyValue, Row, Slot, Value


@dataclass(frozen=True, slots=True)
class Projection:
    """A table that repeats a truth row for row, or an index, which holds keys only.

    ``key`` names its primary key in the order of the family's ``slot``. ``belongs`` says whether a
    truth row has a row here. ``identity`` is the column with the source, None in an index.
    ``write_time_of_sets`` is a column that James writes with every change of a set; its write time
    stands for the set's, which Cassandra 4 cannot read. ``collects`` is the set column of an index
    with one row for each mailbox; the set holds elements of all messages and only grows.
    ``optional`` names the content of a table that some installations do not write; an optional
    listing is compared only where James writes it (`reconcilers.rows.table_use`). ``conversions``
    are for columns that are stored in another form than in the truth. ``keeps`` are columns that
    its readers need and the truth lacks (`reconcilers.rows.kept`). ``grants_access``: whom a row
    names may read mail. ``only_by`` is the command that alone repairs it: the stream reports.
    ``partition`` is the partition key, if it is not the first column of ``key``. ``columns``
    (without the key) and ``sets`` come from the cluster's schema (`bind`), because versions of
    James differ. Raises `NotGuarded` if the table is a truth table (promise 1).
    """

    name: str
    table: str
    key: tuple[str, ...]
    belongs: Callable[[Row], bool]
    identity: str | None = None
    write_time_of_sets: str | None = None
    collects: str | None = None
    optional: str | None = None
    conversions: Conversions = field(default_factory=dict)
    keeps: tuple[str, ...] = ()
    grants_access: bool = False
    only_by: str = ""
    partition: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    sets: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.table in NEVER_WRITTEN and not self.only_by:
            raise NotGuarded(f"projection {self.name} names the truth table {self.table}")

    @property
    def is_index(self) -> bool:
        """Whether its rows name no message. They then follow the family's first projection."""
        return self.identity is None

    def source_of(self, row: Row | None) -> KeyValue | None:
        """The source (a message) that a row names, None if it names none."""
        if row is None or self.identity is None:
            return None
        return self.as_source(row.get(self.identity))

    def as_source(self, named: Value) -> KeyValue | None:
        """The source that a cell of the column ``identity`` names, None if it names none."""
        stored = self.conversions.get(str(self.identity))
        source = named if stored is None else stored.back(named)
        return source if isinstance(source, PARTS) else None


@dataclass(frozen=True, slots=True)
class Family:
    """A truth, a key, the tables that wake the key, and the tables that follow the truth.

    ``key`` names the slots and findings. In a family with projections it has the columns of the
    truth's ``slot``, under its own names. ``wakes_on`` are the tables whose events wake a key. The
    first projection lists the sources; the others are indexes, which follow it. A family of tallies
    has no projections; the keys that other families examine wake it. ``reads`` are further tables.
    ``suffix`` ends the names of its lineage tables. If it is not ``remembered``, it has no lineage:
    each row of its listing names its source in its key, so the truth of that source decides, or
    its rows keep what no other table has, and none is removed.

    Raises `NotGuarded` if it would write a table that it reads as truth (promise 1). Raises
    `Misconfigured` if two names are equal, if a projection has another key, or if a family that is
    not remembered removes rows of a listing whose key does not name the source.
    """

    name: str
    truth: TruthTable
    key: tuple[KeyColumn, ...]
    wakes_on: tuple[str, ...]
    projections: tuple[Projection, ...]
    tallies: tuple[Tally, ...] = ()
    reads: tuple[str, ...] = ()
    suffix: str = ""
    remembered: bool = True

    def __post_init__(self) -> None:
        for each in self.written:
            if each.table in (*self.truth.tables, *self.reads):
                raise NotGuarded(f"family {self.name} reads {each.table}: it must not write it")
        names = [*(column.name for column in self.named), *WAKE_FIELDS]
        if len(set(names)) < len(names):
            raise Misconfigured(f"family {self.name}: two names alike among {', '.join(names)}")
        for projection in self.projections:
            if len(projection.key) != len(self.key) and projection.collects is None:
                raise Misconfigured(f"projection {projection.name} has another key than its family")
        removes = any(not each.keeps and not each.only_by for each in self.projections)
        if not self.remembered and removes and not self.is_source_in_key:
            raise Misconfigured(f"family {self.name} needs lineage: its keys name no source")

    @property
    def is_source_in_key(self) -> bool:
        """Whether the key of a listing row contains its source."""
        return any(each.identity in each.key for each in self.projections[:1])

    def named_by(self, slot: Slot) -> frozenset[KeyValue]:
        """The source that a slot names by its own key; none if the key does not contain it."""
        keys = (each for each in self.projections[:1] if each.identity in each.key)
        named = (each.as_source(slot.key[each.key.index(str(each.identity))]) for each in keys)
        return frozenset(source for source in named if source is not None)

    @property
    def named(self) -> tuple[KeyColumn, ...]:
        """The columns of its key and of its source, in the order of records."""
        return (self.key[0], self.truth.source, *self.key[1:])

    @property
    def group(self) -> KeyColumn:
        """The first column of the key; work is shared and projections are partitioned by it."""
        return self.key[0]

    def key_of(self, table: str) -> tuple[str | None, ...] | None:
        """The columns of a table that hold this key, in its order; None for any other table."""
        if table in self.truth.tables:
            return self.truth.named_key
        keys = (each.key for each in self.projections if each.table == table)
        return next(keys, None)

    def known_part(self, *known: KeyValue | None) -> Slot:
        """The slot of a finding about a key of which only these parts are known; no row's."""
        (first, group), *rest = zip_longest(self.key, known)
        named = (column.none_named if part is None else part for column, part in rest)
        return Slot(first.of_no_row if group is None else group, *named)

    def whole_group(self, group: KeyValue | None) -> Slot:
        """The slot of a finding about a whole group (mailbox) that cannot be read; no row's."""
        return self.known_part(group)

    def is_whole_group(self, slot: Slot) -> bool:
        """Whether a slot is one that `whole_group` returns."""
        if len(self.key) < 2 or slot.key[-1] != self.key[-1].none_named:
            return False  # the usual case, first because each key comes here
        return slot == self.whole_group(slot.group)

    def place_of_number(self, number: int) -> Slot:
        """The slot of a finding that stands for many rows, by number. It is no row's."""
        *first, last = self.key
        return Slot(*(each.of_no_row for each in first), last.of_no_row_numbered(number))

    @property
    def nowhere(self) -> Slot:
        """A key that no row has, for testing whether a table can be read at all."""
        return Slot(*(column.of_no_row for column in self.key))

    def place(self, slot: Slot) -> str:
        """A slot for a sentence: ``mailbox … UID 7``."""
        if slot.key and self.is_whole_group(slot):
            return f"{self.group.label} {slot.group} as a whole"
        first, *rest = zip(self.key, slot.key, strict=False)
        known = rest if rest and first[1] == self.key[0].of_no_row else [first, *rest]
        return " ".join(f"{column.label} {value}" for column, value in known)

    @property
    def repaired(self) -> tuple[Projection | Tally, ...]:
        """All projections and tallies."""
        return (*self.projections, *self.tallies)

    @property
    def written(self) -> tuple[Projection | Tally, ...]:
        """All that it may write."""
        return (*(each for each in self.projections if not each.only_by), *self.tallies)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its projections and tallies; two tables of a tally share a name."""
        return tuple(dict.fromkeys(each.name for each in self.repaired))

    @property
    def listing(self) -> Projection:
        """The first projection, whose rows name the sources."""
        return self.projections[0]


def keeping(family: Family, names: Collection[str]) -> Family:
    """The family with these projections or tallies only; the first projection always stays.

    The tables of the kept indexes wake it too. An event of one that collects wakes the whole group.
    """
    if family.tallies:
        kept_tallies = tuple(each for each in family.tallies if each.name in names)
        return replace(family, tallies=kept_tallies)
    first, *others = family.projections
    kept = [each for each in others if each.name in names]
    tables = [each.table for each in kept]
    return replace(family, projections=(first, *kept), wakes_on=(*family.wakes_on, *tables))


Schema = dict[str, dict[str, str]]
"""The cluster's column types by table and column: ``{"imapuidtable": {"uid": …}}``."""


def bind(family: Family, schema: Schema) -> Family:
    """The family with the columns of this cluster.

    A projection copies every column that both tables have. A required column that the truth lacks
    (another version of James) is dropped from ``required``, and a tally without a table is left
    out. Raises `Misconfigured` if a table or key column is missing, or a column's type cannot be
    copied.
    """
    truth = family.truth
    read = () if truth.derive is None else truth.derive.reads
    stored = _columns(schema, truth.table, (truth.source.name, *truth.stored_key, *read))
    columns = truth.gives(stored)
    required = tuple(column for column in truth.required if column in columns)
    tallies = tallies_in(family, schema)
    for tally in tallies:
        _columns(schema, tally.table, tuple(sorted(tally.columns)))
    gone = set(truth.older) - schema.keys()
    return replace(
        family,
        wakes_on=tuple(table for table in family.wakes_on if table not in gone),
        tallies=tallies,
        truth=replace(
            truth,
            required=required,
            contents=contents_in(truth, schema),
            owner=None if unknown_contents(truth, schema) else truth.owner,
            older=tuple(table for table in truth.older if table not in gone),
            newer=truth.newer if truth.newer and truth.newer.table in schema else None,
            users=truth.users if truth.users and truth.users.table in schema else None,
            sets=frozenset(column for column in stored if _is_set(stored[column])),
        ),
        projections=tuple(_bind(each, columns, schema) for each in family.projections),
    )


def tallies_in(family: Family, schema: Schema) -> tuple[Tally, ...]:
    """The tallies with a table, perhaps two of a name (see `reconcilers.counters.live_table`)."""
    return tuple(each for each in family.tallies if each.table in schema)


def _bind(projection: Projection, truth: Collection[str], schema: Schema) -> Projection:
    named = (projection.identity, projection.collects)
    needed = (*projection.key, *(column for column in named if column is not None))
    own = _columns(schema, projection.table, (*needed, *projection.keeps))
    if projection.is_index:
        collected = needed[len(projection.key) :]
        return replace(projection, columns=collected, sets=frozenset(collected))
    copied = tuple(
        sorted(column for column in own if column in truth and column not in projection.key)
    )
    for column in copied:
        _refuse_unknown_type(projection.table, column, own[column])
    sets = frozenset(column for column in copied if _is_set(own[column]))
    return replace(projection, columns=copied, sets=sets)


def _is_set(cql_type: str) -> bool:
    return cql_type.startswith("set<")


COPIED = frozenset(
    {
        *("ascii", "text", "varchar", "uuid", "timeuuid", "boolean", "timestamp"),
        *("tinyint", "smallint", "int", "bigint", "varint"),
        *("set<text>", "set<ascii>", "set<varchar>"),
    }
)
"""The CQL types of cells that can be copied, compared, and written to the journal."""


def _refuse_unknown_type(table: str, column: str, cql_type: str) -> None:
    if cql_type not in COPIED:
        raise Misconfigured(
            f"column {table}.{column} is of type {cql_type}, which this version cannot copy:"
            " a newer James needs a newer version"
        )


def _columns(schema: Schema, table: str, needed: tuple[str, ...]) -> dict[str, str]:
    if table not in schema:
        raise Misconfigured(f"table {table} does not exist in the keyspace: is the name right?")
    missing = [column for column in needed if column not in schema[table]]
    if missing:
        raise Misconfigured(f"table {table} has no column {', '.join(missing)}: not a James table?")
    return schema[table]
