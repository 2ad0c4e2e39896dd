"""Builds what the families beside that of messages share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from checkpoints.bookmarks import Offsets
from reconcilers.words.errors import Unreachable
from streaming.canary.alone import CanariesAlone
from streaming.commands.wiring.opened_stream import OpenedStream
from streaming.pipeline.range_reader import records_of
from streaming.pipeline.record_search import RecordSearch
from streaming.pipeline.session import spark_session
from streaming.pipeline.waiting_ends import WaitingEnds
from streaming.settings import Settings
from streaming.topics import FewRecords, Watcher, came_astray


@dataclass(frozen=True, slots=True)
class Beside:
    """What these families share: the ends that wait, and the search of ranges."""

    ends: WaitingEnds
    search: RecordSearch


def beside_of(opened: OpenedStream, families: Sequence[OpenedStream]) -> Beside:
    """What ``families`` share in the process of the stream ``opened``."""
    settings = opened.settings
    kafka, stream = settings.kafka, settings.stream.seldom
    bound = [each.job.family for each in families]
    read = partial(records_of, spark_session(stream), kafka)
    search = RecordSearch(read, bound, settings.canary.keyspace)
    ends = partial(_ends, Watcher(kafka), opened.topics)
    return Beside(WaitingEnds(ends, stream.delay, stream.window), search)


def _ends(watcher: Watcher, topics: tuple[str, ...]) -> Offsets:
    """The ends of all partitions. Raises `Unreachable`, also if Kafka misses a topic right now."""
    ends = watcher.end_offsets(topics)
    missing = [topic for topic in topics if not ends.get(topic)]
    if missing:
        raise Unreachable(f"Kafka reports no partitions of {', '.join(missing)} right now")
    return ends


def canaries_alone(settings: Settings) -> CanariesAlone:
    """Recognises slices of canaries alone, by a consumer of its own."""
    topic, keyspace = settings.kafka.topic_prefix, settings.canary.keyspace
    return CanariesAlone(FewRecords(settings.kafka).read, topic, keyspace, came_astray)
