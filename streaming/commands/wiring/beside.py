"""Builds what the families beside that of messages share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from checkpoints.bookmarks import Offsets
from checkpoints.clock import to_micros
from streaming.commands.wiring.opened_stream import OpenedStream
from streaming.pipeline.range_reader import records_of
from streaming.pipeline.record_search import RecordSearch
from streaming.pipeline.session import spark_session
from streaming.pipeline.starting_point import of_all
from streaming.pipeline.waiting_ends import WaitingEnds
from streaming.topics import Watcher


@dataclass(frozen=True, slots=True)
class Beside:
    """What these families share: the ends that wait, and the search of ranges."""

    ends: WaitingEnds
    search: RecordSearch


def beside_of(opened: OpenedStream, families: Sequence[OpenedStream]) -> Beside:
    """What ``families`` share in the process of the stream ``opened``."""
    settings = opened.settings
    stream = settings.stream.seldom
    bound = [each.job.family for each in families]
    read, canary = partial(records_of, spark_session(settings), settings), settings.canary
    search = RecordSearch(read, bound, canary.keyspace, to_micros(canary.longest_pause))
    watcher = Watcher(settings.kafka)

    def ends() -> Offsets:
        return of_all(opened.topics, watcher.end_offsets(opened.topics))

    return Beside(WaitingEnds(ends, stream.delay, stream.window), search)
