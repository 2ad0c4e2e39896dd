"""What an event's record names, as Spark columns: a key, in part or whole, and a source."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (the field's usual name)

from reconcilers.declared.family import Family
from reconcilers.words.errors import Misconfigured
from reconcilers.words.key import TIMED, UUIDS
from streaming.pipeline.reasons import TIMED_UUID, UUID


def key_of(family: Family, table: str) -> tuple[str | None, ...]:
    """The columns of a table's records that hold the key. Raises `Misconfigured`."""
    key = family.key_of(table)
    if key is None:
        raise Misconfigured(f"family {family.name} wakes on {table}, which has no key of its")
    return key


class EventColumns:
    """Columns with the key and the source that an event of each of the family's tables names."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.table = F.col("v").source["table"]
        self.is_truth = self.table.isin(*family.truth.tables)
        collecting = [each.table for each in family.projections if each.collects is not None]
        self.collects = self.table.isin(*collecting) if collecting else F.lit(False)

    def part(self, number: int) -> Column:
        """The key part with this number, from the key of each table's record.

        An event of a table that collects names the group as a whole (`Family.whole_group`).
        """
        part = self._of_table(number, lambda name: F.col("k")[name])
        if not number:
            return part
        none = self.family.key[number].none_named
        whole = none if isinstance(none, int) else str(none)
        return F.when(self.collects, F.lit(whole)).otherwise(part)

    def ranged(self, number: int) -> Column:
        """That key part as text, if both bounds of a range delete name the same value."""
        return self._of_table(number, _ranged)

    def _of_table(self, number: int, value: Callable[[str], Column]) -> Column:
        tables: dict[str, list[str]] = {}
        for table in self.family.wakes_on:
            name = dict(enumerate(key_of(self.family, table))).get(number)
            if name is not None:
                tables.setdefault(name, []).append(table)
        if len(tables) == 1:
            return value(*tables)
        return F.coalesce(
            *(F.when(self.table.isin(*some), value(name)) for name, some in tables.items())
        )

    def names_source_alone(self) -> Column:
        """Whether it is an event of a truth whose rows are derived: it names no slot."""
        derived = None in self.family.truth.named_key
        return self.is_truth if derived else F.lit(False)

    def of_another_thing(self) -> Column:
        """Whether it is an event of a shared truth table whose partition cannot be a source."""
        truth = self.family.truth
        pattern = TIMED_UUID if truth.source.type in TIMED else UUID
        if not truth.is_shared or truth.source.type not in UUIDS:
            return F.lit(False)
        named = F.coalesce(F.col("k")[truth.source.name].rlike(pattern), F.lit(True))
        return F.coalesce(self.is_truth & ~named, F.lit(False))

    def changes_no_row(self) -> Column:
        """Whether it is an insert or update that sets none of the columns truth rows come from.

        Whether a column is set is known; what its list or set became is not.
        """
        columns = self.family.truth.listed_in
        if not columns:
            return F.lit(False)
        value = F.col("v")
        unset = self.is_truth & value.op.isin("i", "u") & value.after.isNotNull()
        for each in columns:
            unset &= value.after[each].isNull()
        return F.coalesce(unset, F.lit(False))

    def partition(self) -> Column:
        """The partition key, which every event has."""
        source = self.family.truth.source.name
        return F.when(self.is_truth, F.col("k")[source]).otherwise(self.part(0))

    def source_in_key(self) -> Column:
        """The source, from the key of a truth record; null for other tables."""
        return F.when(self.is_truth, F.col("k")[self.family.truth.source.name])

    def source_told(self) -> Column:
        """The source that a listing row names; null for other tables."""
        listing = self.family.listing
        if self.family.is_source_in_key:
            named = F.col("k")[str(listing.identity)]
        else:
            named = F.col("v").after[str(listing.identity)].value
        return F.when(self.table == listing.table, named)


def _ranged(column: str) -> Column:
    """The column's value if both bounds of a range delete name the same one; else null."""

    def bound(name: str) -> Column:
        values = F.col("v.after")[name].values
        return F.get(F.filter(values, lambda each: each["name"] == column), F.lit(0))["value"]

    start, end = bound("_range_start"), bound("_range_end")
    return F.when(start == end, start)
