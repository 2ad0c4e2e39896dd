"""Which changes are sampled, in native Spark SQL: they come with the report of each batch.

The stream reads each record once, when it has just come, to let its offset wait. The same pass
collects the keys of the sampled changes (`reconcilers.rows.sample`), so sampling reads nothing
again. Only a hash is computed for the other records. Inserts and updates of truth rows are sampled;
James's deletes name no slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the field's usual name)

from reconcilers.declared.family import Family
from reconcilers.rows.sample import SampledChange
from reconcilers.words.model import Slot
from streaming.pipeline.envelope import key_schema, value_schema
from streaming.pipeline.event_columns import key_of
from streaming.pipeline.sources import name_in_text

NAME = "sampled"
"""Under this name the changes are in Spark's report of a batch."""
WRITTEN = "written"


def change_column(family: Family, keyspace: str, one_in: int) -> Column:
    """The sampled change of a record: its key, its source, ``written``; null for other records.

    Spark's ``crc32`` of the record's key is that of `reconcilers.rows.sample.is_sampled`. Reads
    ``key`` and ``value``.
    """
    chosen = F.pmod(F.crc32("key"), F.lit(one_in)) == 0
    table = name_in_text()
    key = F.from_json(F.col("key").cast("string"), key_schema(family))
    value = F.from_json(F.col("value").cast("string"), value_schema(family))
    named = _columns(family)
    of_family = table.isin(*family.truth.tables) & (value.source.keyspace == keyspace)
    changed = value.op.isin("i", "u") & value.source.ts_us.isNotNull()
    for column in named.values():
        changed &= key[column].isNotNull()
    change = F.struct(
        *(key[column].cast("string").alias(name) for name, column in named.items()),
        value.source.ts_us.alias(WRITTEN),
    )
    return F.when(chosen, F.when(of_family & changed, change))


def _columns(family: Family) -> Mapping[str, str]:
    """The columns of a truth record's key, by the family's names of them, its source first."""
    source = family.truth.source.name
    columns = zip(family.key, key_of(family, family.truth.table), strict=True)
    return {source: source, **{each.name: str(column) for each, column in columns}}


@dataclass(frozen=True, slots=True)
class SampleReader:
    """The sampled changes of one family's records; ``take`` receives those of each batch."""

    family: Family
    keyspace: str
    one_in: int
    take: Callable[[Iterable[SampledChange]], None]

    def observed(self, records: DataFrame) -> DataFrame:
        """The same records; the report of each batch then has the sampled changes in them."""
        return records.observe(NAME, F.collect_list(self._column).alias(NAME))

    def read(self, records: DataFrame) -> list[SampledChange]:
        """The sampled changes in these records, read now."""
        rows = records.select(self._column.alias(NAME)).where(F.col(NAME).isNotNull()).collect()
        return list(self._changes(row[NAME].asDict() for row in rows))

    def told(self, report: Mapping[str, Any]) -> None:
        """Take the changes in Spark's report of a batch, as JSON."""
        observed = report.get("observedMetrics", {}).get(NAME, {})
        self.take(self._changes(observed.get(NAME, ())))

    @property
    def _column(self) -> Column:
        return change_column(self.family, self.keyspace, self.one_in)

    def _changes(self, told: Iterable[Mapping[str, Any]]) -> Iterator[SampledChange]:
        """The changes whose ids can be read; an event with others is a dead letter."""
        source = self.family.truth.source
        for each in told:
            try:
                slot = Slot(*(column.value(each[column.name]) for column in self.family.key))
                yield SampledChange(slot, source.value(each[source.name]), int(each[WRITTEN]))
            except ValueError:
                continue
