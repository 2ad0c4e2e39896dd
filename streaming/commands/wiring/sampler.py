"""Builds the sampler of a family: what it reads at the start, and its own connections."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints.bookmarks import Bookmark
from checkpoints.cassandra import CassandraBookmarks
from checkpoints.clock import now_micros
from reconcilers.rows.sample import AGES, Sample, SampledBatch
from streaming.commands.wiring.opened_stream import OpenedStream
from streaming.commands.wiring.workers import glance_of
from streaming.pipeline.cores import Pool, use_pool
from streaming.pipeline.range_reader import records_of
from streaming.pipeline.sample_events import SampleReader
from streaming.pipeline.sampler import Sampler
from streaming.pipeline.session import spark_session
from streaming.steps.sample_looks import SampledLooks
from streaming.tables import Tables, connect
from streaming.topics import Watcher


@dataclass(frozen=True, slots=True)
class SamplerParts:
    """The sampler of a stream, and what hands it the sampled changes of each batch."""

    sampler: Sampler
    changes: SampleReader


def sampler_of(opened: OpenedStream) -> SamplerParts | None:
    """The sampler of this stream's family; None if it is switched off.

    Call it before the stream settles anything: the time of its newest bookmark tells which looks an
    earlier process has made.
    """
    settings, family = opened.settings, opened.job.family
    if not settings.sample.one_in:
        return None
    opened.metrics.slo_target.set(settings.slo.target)
    bookmarks = CassandraBookmarks(opened.store)
    newest = bookmarks.newest(opened.names.bookmarks(family))
    made_until = now_micros() if newest is None else newest.recorded_at
    tables = Tables(connect(settings.cassandra), settings.cassandra, family)
    looks = SampledLooks(family, tables, glance_of(settings, tables, family))
    sampler = Sampler(
        sample=Sample(tuple(each.name for each in family.projections), due_after=made_until),
        looks=looks,
        most=settings.sample.looks_per_second,
        metrics=opened.metrics,
        clock=now_micros,
        earlier=lambda: SampledBatch() if newest is None else _earlier(opened, changes, newest),
    )
    keyspace, one_in = settings.cassandra.keyspace, settings.sample.one_in
    changes = SampleReader(family, keyspace, one_in, sampler.take)
    return SamplerParts(sampler, changes)


def _earlier(opened: OpenedStream, changes: SampleReader, newest: Bookmark) -> SampledBatch:
    """The settled changes that still had looks to come. Raises `Unreachable`."""
    kafka = opened.settings.kafka
    watcher = Watcher(kafka)
    try:
        first = watcher.offsets_at([kafka.topic_prefix], newest.recorded_at - max(AGES))
    finally:
        watcher.close()
    settled = {place: newest.settled.get(place, 0) for place in first}
    ranges = {place: (at, settled[place]) for place, at in first.items() if at < settled[place]}
    if not ranges:
        return SampledBatch()
    spark = spark_session(opened.settings)
    use_pool(spark, Pool.SWEEP)
    return changes.read(records_of(spark, opened.settings, ranges))
