"""The pieces of a batch, each run alone over the same events or the same keys."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reconcilers.declared.family import Family, bind
from reconcilers.rows.memory import Entry
from streaming.commands.wiring import workers
from streaming.pipeline import worker
from streaming.pipeline.cores import shares
from streaming.pipeline.envelope import decoder
from streaming.pipeline.keys import grouper
from streaming.pipeline.session import spark_session
from streaming.pipeline.window import heartbeat, settle
from streaming.pipeline.worker import (
    KEYS_AT_ONCE,
    RESULT_SCHEMA,
    BatchLook,
    Connections,
    Job,
    look_task,
    read_looks,
)
from streaming.settings import Settings
from streaming.tables import connect, schema_of
from streaming.topics import stream_options
from tests.bench.backlog import topics_of
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.stack.streams import until

Task = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Forgetful(MemoryLineage):
    """Remembers nothing of what it is told."""

    def remember(self, entries: Iterable[Entry]) -> None:
        """Not this one."""

    def expire(self, entries: Iterable[Entry]) -> None:
        """Nor this."""


class Pieces:
    """One Spark session, over the events and rows of one keyspace."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.family = bound(settings)
        self.job = workers.job(settings, self.family, settings.kafka.suspects_topic)
        self._folder = folder
        self.spark: SparkSession = spark_session(settings)

    # --- over the events

    def read(self) -> float:
        """Seconds to read all records of the agent's topic."""
        return _seconds(lambda: _discard(self._records().select("key", "value")))

    def decode(self) -> float:
        """Seconds to read and decode them."""
        return _seconds(lambda: _discard(self._decoded(self._records())))

    def settle(self) -> float:
        """Seconds to read and settle them, as a stream does; what comes out is let go."""
        stream, topics = self.settings.stream, topics_of(self.settings)
        source = self.spark.readStream.format("kafka").option("startingOffsets", "earliest")
        records = source.options(**stream_options(self.settings.kafka, topics, None)).load()
        keys = settle(records, heartbeat(self.spark), stream)
        wanted = self._records().count()
        busy: dict[int, dict[str, int]] = {}

        def done() -> bool:
            for each in query.recentProgress:
                told = {"events": each.numInputRows - 1, **dict(each.durationMs)}
                if each.numInputRows > 1:
                    busy[each.batchId] = told
            return sum(told["events"] for told in busy.values()) >= wanted

        query = (
            keys.writeStream.outputMode("append")
            .option("checkpointLocation", str(self._folder / "settle"))
            .trigger(processingTime=f"{round(stream.window * 1000)} milliseconds")
            .foreachBatch(lambda batch, _: _discard(batch))
            .start()
        )
        try:
            until("all events are settled", done, 600)
        finally:
            query.stop()
        return sum(told["triggerExecution"] for told in busy.values()) / 1000

    # --- over the keys

    def keys(self) -> Path:
        """The settled keys of all events, kept as a file."""
        path = self._folder / "keys.parquet"
        grouper(self.family)(self._decoded(self._records()), 1).write.parquet(str(path))
        return path

    def warm_up(self, keys: Path) -> None:
        """Start the workers and connect them, before anything of theirs is measured."""
        some = self.spark.read.parquet(str(keys)).limit(2 * KEYS_AT_ONCE)
        some.repartition(shares(self.spark, self.settings.stream)).mapInArrow(
            look_task(self.job), RESULT_SCHEMA
        ).collect()

    def look(self, keys: Path, task: Task | None = None) -> tuple[float, BatchLook]:
        """Seconds that the workers take for a look at these keys, and what they found."""
        began = time.monotonic()
        looked = (
            self.spark.read.parquet(str(keys))
            .repartition(shares(self.spark, self.settings.stream), "mailboxid")
            .sortWithinPartitions("mailboxid", "uid")
            .mapInArrow(task or look_task(self.job), RESULT_SCHEMA)
        )
        found = read_looks(row.result for row in looked.collect())
        return time.monotonic() - began, found

    def look_without_lineage(self, keys: Path) -> tuple[float, BatchLook]:
        """The same look where nothing is remembered, and nothing asked."""
        return self.look(keys, partial(_forgetful_share, self.job))

    def _records(self) -> DataFrame:
        options = stream_options(self.settings.kafka, topics_of(self.settings), None)
        return self.spark.read.format("kafka").options(**options).load()

    def _decoded(self, records: DataFrame) -> DataFrame:
        settings = self.settings
        keyspace, suspects = settings.cassandra.keyspace, settings.kafka.suspects_topic
        return decoder(self.family, keyspace, suspects, settings.canary.keyspace)(records)


def bound(settings: Settings) -> Family:
    """The message family with the columns of this keyspace."""
    session = connect(settings.cassandra)
    return bind(settings.families()[0], schema_of(session, settings.cassandra.keyspace))


def _forgetful_share(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from worker.look_task(replace(job, connect=_forgetful))(batches)


def _forgetful(settings: Settings, family: Family) -> Connections:
    return replace(workers.connections(settings, family), lineage=Forgetful())


def _discard(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def _seconds(what: Callable[[], object]) -> float:
    began = time.monotonic()
    what()
    return time.monotonic() - began
