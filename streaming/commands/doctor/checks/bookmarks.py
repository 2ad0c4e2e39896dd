"""Kafka keeps what a replay from a named bookmark reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from checkpoints.bookmarks import Bookmark, Offsets, flat
from checkpoints.cassandra import CassandraBookmarks
from reconcilers.declared.family import Family
from reconcilers.words.errors import Refused, Retryable
from reconcilers.words.iso import iso
from streaming.commands.doctor.checks.check import Check, KafkaContext, warning
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode, Settings
from streaming.tables import logged_in
from streaming.tables.own_keyspace import gap_in


def bookmarks(broker: KafkaContext) -> Iterator[Check]:
    """The named bookmarks of both modes. Raises as Kafka does."""
    events, named = broker.settings.kafka.topic_prefix, list[Bookmark]()
    with suppress(Retryable, Refused):  # the checks of Cassandra report it
        named = _named(broker.settings, broker.families[0])
    if named and not broker.watcher.missing([events]):
        yield from too_old(named, broker.watcher.beginning_offsets([events]))


def _named(settings: Settings, first: Family) -> list[Bookmark]:
    """The bookmarks; none before our own keyspace is complete. Raises as Cassandra does."""
    with logged_in(settings.cassandra) as cluster:
        store = cluster.store(settings.cassandra)
        if gap_in(store, settings.cassandra).todo:
            return []
        stored = CassandraBookmarks(store)
        streams = [StreamNames.of(settings, mode).bookmarks(first) for mode in Mode]
        return [each for stream in streams for each in stored.all_named(stream)]


def too_old(named: Iterable[Bookmark], kept: Offsets) -> Iterator[Check]:
    """The bookmarks after which Kafka has deleted records; ``kept`` are the oldest offsets."""
    oldest = flat(kept)
    for each in named:
        gone = sum(
            max(0, oldest[place] - at) for place, at in each.settled.items() if place in oldest
        )
        if gone:
            yield warning(
                f"bookmark {each.name} of {iso(each.recorded_at)}: Kafka has deleted {gone:,}"
                " records after it, which a replay from it would not read",
                f"`reconcile sweep` compares what it would; then `reconcile bookmark --delete"
                f" {each.name}`. To replay from so long ago, raise retention.ms",
            )
