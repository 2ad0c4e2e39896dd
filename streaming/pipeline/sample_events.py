"""Which changes are sampled, in native Spark SQL: they come with the report of each batch.

The stream reads each record once, when it has just come, to let its offset wait. The same pass
collects the keys of the sampled changes (`reconcilers.rows.sample`), so sampling reads nothing
again. Only a hash is computed for the other records. Inserts and updates of truth rows are sampled;
James's deletes name no slot.

No more than a number of changes come to the driver, those with the smallest hashes of key and write
time: a choice over all of the batch, and the same one for each copy of an event. The others are
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the field's usual name)
from pyspark.sql.internal import InternalFunction

from reconcilers.declared.family import Family
from reconcilers.rows.sample import MOST_KEYS, SampledBatch, SampledChange
from reconcilers.words.model import Slot
from streaming.pipeline.envelope import key_schema, value_schema
from streaming.pipeline.event_columns import key_of
from streaming.pipeline.sources import name_in_text

NAME = "sampled"
"""Under this name the changes are in Spark's report of a batch."""
ALL = "all_sampled"
"""Under this name their number is, with that of the changes that were left out."""
WRITTEN = "written"
RANK = "rank"
MOST_OF_BATCH = 10_000
"""Changes that a batch hands to the driver: 2 MB of JSON, five minutes of 100 looks a second."""


def change_column(family: Family, keyspace: str, one_in: int) -> Column:
    """The sampled change of a record: rank, key, source, ``written``; null for other records.

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
        F.xxhash64("key", value.source.ts_us).alias(RANK),
        *(key[column].cast("string").alias(name) for name, column in named.items()),
        value.source.ts_us.alias(WRITTEN),
    )
    return F.when(chosen, F.when(of_family & changed, change))


def _columns(family: Family) -> Mapping[str, str]:
    """The columns of a truth record's key, by the family's names of them, its source first."""
    source = family.truth.source.name
    columns = zip(family.key, key_of(family, family.truth.table), strict=True)
    return {source: source, **{each.name: str(column) for each, column in columns}}


def _collected(most: int) -> tuple[Column, Column]:
    """The changes of column `NAME` with the smallest ranks, at most so many; the number of all."""
    # Spark's own plots use this function. `collect_list` would first collect all of them.
    chosen = InternalFunction.collect_top_k(F.col(NAME), most, reverse=True)
    return chosen.alias(NAME), F.count(NAME).alias(ALL)


@dataclass(frozen=True, slots=True)
class SampleReader:
    """The sampled changes of one family's records; ``take`` receives those of each batch."""

    family: Family
    keyspace: str
    one_in: int
    take: Callable[[SampledBatch], None]

    def observed(self, records: DataFrame) -> DataFrame:
        """The same records; the report of each batch then has the sampled changes in them.

        It has at most `MOST_OF_BATCH` of them.
        """
        with_changes = records.withColumn(NAME, self._column)
        return with_changes.observe(NAME, *_collected(MOST_OF_BATCH)).drop(NAME)

    def read(self, records: DataFrame) -> SampledBatch:
        """The sampled changes in these records, read now; at most `MOST_KEYS`."""
        (row,) = records.select(self._column.alias(NAME)).agg(*_collected(MOST_KEYS)).collect()
        return self._batch([each.asDict() for each in row[NAME]], row[ALL])

    def told(self, report: Mapping[str, Any]) -> None:
        """Take the changes in Spark's report of a batch, as JSON."""
        observed = report.get("observedMetrics", {}).get(NAME)
        if observed is not None:
            self.take(self._batch(observed[NAME], observed[ALL]))

    @property
    def _column(self) -> Column:
        return change_column(self.family, self.keyspace, self.one_in)

    def _batch(self, told: Sequence[Mapping[str, Any]], number: int) -> SampledBatch:
        return SampledBatch(tuple(self._changes(told)), left_out=number - len(told))

    def _changes(self, told: Iterable[Mapping[str, Any]]) -> Iterator[SampledChange]:
        """The changes whose ids can be read; an event with others is a dead letter."""
        source = self.family.truth.source
        for each in told:
            try:
                slot = Slot(*(column.value(each[column.name]) for column in self.family.key))
                yield SampledChange(slot, source.value(each[source.name]), int(each[WRITTEN]))
            except ValueError:
                continue
