"""``reconcile replay``: compares the keys of events that were settled before.

The live stream continues, and its progress does not change. It repairs what differs. If no stream
runs, suspects wait for one, or the command runs one until they are settled (``--settle``).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from checkpoints.bookmarks import Bookmark, Bookmarks, Place, Positions, flat
from checkpoints.cassandra import CassandraBookmarks
from reconcilers.declared.family import bind
from reconcilers.words.errors import Misconfigured
from streaming.again.progress import ShownProgress
from streaming.again.replay import (
    DryReplayJob,
    Replay,
    Replayable,
    ReplayJob,
    ReplayResult,
    reader,
    replayable,
)
from streaming.again.sweep import Interrupted
from streaming.commands.again.bookmark import BookmarkDesk
from streaming.commands.arguments.times import time_of
from streaming.commands.running.own_stream import OwnStream, add_settle
from streaming.commands.running.signals import Stop, stopped_by_signals
from streaming.commands.wiring import workers
from streaming.commands.wiring.hand_over import add_mode, hand_over, names_of, wait_unless
from streaming.pipeline.needs import refuse_without_spark
from streaming.pipeline.session import spark_session
from streaming.pipeline.starting_point import COMPARE, other_than
from streaming.pipeline.worker import Job
from streaming.settings import Settings
from streaming.tables import connect, schema_of
from streaming.tables.own_keyspace import open_own
from streaming.topics import Watcher, own_topics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile replay --from-offset … | --from-time T | --bookmark NAME [--to-time T]``."""
    begins = parser.add_mutually_exclusive_group(required=True)
    begins.add_argument(
        "--from-offset",
        type=_place,
        action="append",
        metavar="TOPIC:PARTITION:OFFSET",
        help="from here on; may be given for several partitions, no other is read",
    )
    begins.add_argument(
        "--from-time", type=time_of, metavar="TIME", help="ISO 8601; UTC without an offset"
    )
    begins.add_argument("--bookmark", metavar="NAME", help="see `reconcile bookmark --list`")
    parser.add_argument(
        "--to-time", type=time_of, metavar="TIME", help="to here (all that the stream has settled)"
    )
    add_mode(parser)
    parser.add_argument(
        "--dry-run", action="store_true", help="show what differs, and hand nothing over"
    )
    add_settle(parser)
    parser.set_defaults(run=run)


def _place(text: str) -> tuple[Place, int]:
    topic, *numbers = text.rsplit(":", 2)
    if not topic or len(numbers) < 2 or not all(each.isdigit() for each in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not TOPIC:PARTITION:OFFSET")
    return (topic, int(numbers[0])), int(numbers[1])


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Replay; 0 if all was compared and settled, else 1."""
    stop = stopped_by_signals()
    with stop.first("begin again for the rest"):
        return _run(settings, arguments, stop)


def _run(settings: Settings, arguments: argparse.Namespace, stop: Stop) -> int:
    if None not in (times := (arguments.from_time, arguments.to_time)) and times[0] >= times[1]:
        raise Misconfigured("--to-time is not after --from-time: nothing lies between them")
    refuse_without_spark(settings.stream)
    wait = partial(wait_unless, stop)
    store = open_own(settings).store
    family = settings.families()[0]
    family = bind(family, schema_of(connect(settings.cassandra), settings.cassandra.keyspace))
    names = names_of(arguments.mode, settings, family, store)
    job = workers.job(settings, family, names.suspects_topic)
    bookmarks, stream = CassandraBookmarks(store), names.bookmarks(family)
    with closing(Watcher(settings.kafka)) as watcher:
        topics = (settings.kafka.topic_prefix,)
        own = frozenset(own_topics(settings.kafka))
        wanted = AskedOffsets(watcher, topics, bookmarks, stream, own).of(arguments)
        print("\n".join(_asked(wanted)))
        if not wanted.records:
            return int(bool(wanted.gone))
        sink = hand_over(job, names, store, watcher, wait)
        again = _job(arguments, job)
        try:
            with (
                OwnStream(settings, names, store, [sink]) as beside,
                ShownProgress("events") as progress,
            ):
                if arguments.settle and not arguments.dry_run:
                    beside.begin()
                look = reader(spark_session(settings.stream), again)
                publish = _nowhere if arguments.dry_run else sink.publish
                at_once = settings.kafka.max_offsets_per_batch
                held = partial(_beginnings, watcher, topics)
                found = Replay(look, publish, progress, wait, at_once, held).run(wanted)
                (end,) = beside.finish()
        except Interrupted as stopped:
            then = "what was found until then is handed over; begin again for the rest"
            raise stop.ended(then) from stopped
    told = _suspects(found) if arguments.dry_run else end.lines()
    print("\n".join([*_told(found), *told]))
    return int(bool(end.waits or wanted.gone or found.gone or found.unread))


def _job(arguments: argparse.Namespace, of: Job) -> ReplayJob:
    made = DryReplayJob if arguments.dry_run else ReplayJob
    return made(of.settings, of.family, of.suspects_topic, of.connect, of.examiner)


def _beginnings(watcher: Watcher, topics: tuple[str, ...]) -> Positions:
    return flat(watcher.beginning_offsets(topics))


def _nowhere(_suspects: object) -> None:
    """Hand nothing over, in a dry run."""


def _asked(wanted: Replayable) -> Iterator[str]:
    yield from (f"gone: {each}: {COMPARE}" for each in wanted.gone)
    for (topic, number), begin in sorted(wanted.begin.items()):
        yield f"replays {topic}/{number} from {begin} to {wanted.end[topic, number] - 1}"
    if not wanted.records:
        yield "nothing to replay: what the stream has not settled yet it looks at itself"


def _told(found: ReplayResult) -> Iterator[str]:
    yield (
        f"{found.records} events were read, {found.keys} keys compared,"
        f" {found.suspects.total()} suspects found"
    )
    for reason, number in sorted(found.undecodable.items()):
        yield f"not decoded: {number}: {reason}"
    yield from (f"not looked at: {each}" for each in found.unread)
    yield from (f"gone: {each}: {COMPARE}" for each in found.gone)


def _suspects(found: ReplayResult) -> Iterator[str]:
    for (projection, kind), seen in sorted(found.suspects.items()):
        yield f"{projection}: {kind}: {seen} seen, none handed over"


@dataclass(frozen=True, slots=True)
class AskedOffsets:
    """The offsets of these topics that the command line asks for; ``own`` are not replayed."""

    watcher: Watcher
    topics: tuple[str, ...]
    bookmarks: Bookmarks
    stream: str
    own: frozenset[str]

    def of(self, arguments: argparse.Namespace) -> Replayable:
        """The range that Kafka still holds, up to what the stream has settled.

        Raises `Misconfigured` if the command line names an unknown bookmark, topic or offset.
        """
        ends = flat(self.watcher.end_offsets(self.topics))
        beginnings = _beginnings(self.watcher, self.topics)
        begin = self._begin(arguments, ends)
        if not ends:
            raise Misconfigured(
                f"topic {', '.join(self.topics)} does not exist: is kafka.topic_prefix that of the"
                f" agents? If it was deleted, {COMPARE}"
            )
        newest = self.bookmarks.newest(self.stream)
        settled = ends if newest is None else newest.settled
        last = {place: min(end, settled.get(place, 0)) for place, end in ends.items()}
        if arguments.to_time is not None:
            until = self.watcher.offsets_at(self.topics, arguments.to_time)
            last = {place: min(end, until.get(place, end)) for place, end in last.items()}
        found = replayable(begin, last, beginnings)
        if arguments.from_time is None:
            return found
        return replace(found, gone=tuple(_perhaps_gone(begin, beginnings)))

    def _begin(self, arguments: argparse.Namespace, ends: Positions) -> Positions:
        if arguments.bookmark is not None:
            desk = BookmarkDesk(self.bookmarks, self.stream)
            return self._of_bookmark(desk.named(arguments.bookmark), ends)
        if arguments.from_time is not None:
            return self.watcher.offsets_at(self.topics, arguments.from_time)
        return _of_places(arguments.from_offset, ends)

    def _of_bookmark(self, bookmark: Bookmark, ends: Positions) -> Positions:
        """The offsets of a bookmark; partitions that were added since begin at 0.

        Raises `Misconfigured` if the bookmark is of a topic that is not the one that is read.
        """
        others = sorted({topic for topic, _ in bookmark.settled.keys() - ends} - self.own)
        if others:
            raise Misconfigured(
                f"bookmark {bookmark.name} is of {', '.join(others)}: deleted since, or"
                f" kafka.topic_prefix was another; {COMPARE}. --from-offset replays the rest"
            )
        anew = other_than(bookmark.ids, self.watcher.ids(self.topics))
        if anew:
            raise Misconfigured(
                f"bookmark {bookmark.name} is of other topics: {', '.join(anew)}"
                f" was recreated since; {COMPARE}"
            )
        return {place: bookmark.settled.get(place, 0) for place in ends}


def _perhaps_gone(begin: Positions, beginnings: Positions) -> Iterator[str]:
    """Partitions of which Kafka may have deleted records since that time."""
    for (topic, number), offset in sorted(begin.items()):
        oldest = beginnings.get((topic, number), 0)
        if offset == oldest > 0:
            yield f"{topic}/{number} before {oldest}: Kafka's retention may have passed since then"


def _of_places(asked: Iterable[tuple[Place, int]], ends: Positions) -> Positions:
    begin = dict(asked)
    for (topic, number), offset in begin.items():
        if (topic, number) not in ends:
            known = ", ".join(f"{name}:{each}" for name, each in sorted(ends))
            raise Misconfigured(f"--from-offset: {topic}:{number} is none of {known}")
        if offset > ends[topic, number]:
            end = ends[topic, number]
            raise Misconfigured(f"--from-offset: {topic}:{number} ends at {end}, before {offset}")
    return begin
