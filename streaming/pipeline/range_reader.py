"""Steps 2 to 4 for ranges of offsets: read again from Kafka, decode, look on the workers.

The stream reads each range after its delay; a replay reads any range again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from checkpoints.bookmarks import OffsetRanges
from reconcilers.words.model import Slot
from streaming.pipeline.cores import cores, shares
from streaming.pipeline.envelope import decoder
from streaming.pipeline.keys import grouper
from streaming.pipeline.suspect_cap import Cap
from streaming.pipeline.temporary import logins_folder
from streaming.pipeline.worker import RESULT_SCHEMA, BatchLook, Job, look_task, read_looks
from streaming.settings import Settings
from streaming.topics import batch_options

FEW_RECORDS = 500
"""This many records are looked at in less time than a shuffle takes."""


def records_of(spark: SparkSession, settings: Settings, ranges: OffsetRanges) -> DataFrame:
    """The records of these ranges, read when they are used. Raises `Unreachable`."""
    options = batch_options(settings.kafka, ranges, logins_folder(settings.stream))
    return spark.read.format("kafka").options(**options).load()


@dataclass(slots=True)
class RangeReader:
    """Looks at the records in ranges of offsets, for one job.

    ``cap`` says how many suspects of one of so many shares travel; without it all do.
    """

    spark: SparkSession
    job: Job
    cap: Callable[[int, int], Cap] | None = None
    _keys: Callable[[DataFrame, int], DataFrame] | None = field(default=None, init=False)
    """Makes keys of records, in shares; made once, used for every range."""

    def look(self, ranges: OffsetRanges, apart: frozenset[Slot]) -> BatchLook:
        """Look at all ranges together, each group in one task; ``apart`` cannot be read."""
        records = records_of(self.spark, self.job.settings, ranges)
        number = sum(end - begin for begin, end in ranges.values())
        few = number <= FEW_RECORDS
        count = 1 if few else shares(self.spark, self.job.settings.stream)
        job = self.job.of_tasks(min(count, cores(self.spark)))
        believed = self.job.settings.repair.suspects_per_minute
        cap = None if self.cap is None else self.cap(count, believed)
        found = self.keys(records, count).mapInArrow(look_task(job, apart, cap), RESULT_SCHEMA)
        return read_looks(row.result for row in found.collect())

    def keys(self, records: DataFrame, count: int) -> DataFrame:
        """The keys that these records name, each once."""
        if self._keys is None:
            settings, family = self.job.settings, self.job.family
            keyspace, canaries = settings.cassandra.keyspace, settings.canary.keyspace
            decode = decoder(family, keyspace, self.job.suspects_topic, canaries)
            each_key_once = grouper(family)
            self._keys = lambda records, count: each_key_once(decode(records), count)
        return self._keys(records, count)
