"""``reconcile replay``: compares the keys of events that were settled before.

It replays the events of each family, one family after another. The live stream continues, and its
progress does not change. It repairs what differs. If no stream runs, suspects wait for one, or the
command runs one until they are settled (``--settle``).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from checkpoints.bookmarks import Bookmark, Bookmarks, Place, Positions, flat
from checkpoints.cassandra import CassandraBookmarks
from reconcilers.declared.family import Family
from reconcilers.words.errors import Misconfigured
from reconcilers.words.model import Suspect
from streaming.again.hand_over import Closing
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
from streaming.commands.wiring.stream_names import StreamNames
from streaming.pipeline.needs import refuse_without_spark
from streaming.pipeline.session import spark_session
from streaming.pipeline.starting_point import COMPARE, other_than
from streaming.pipeline.worker import Job
from streaming.settings import Settings
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
    refuse_without_spark(settings)
    wait = partial(wait_unless, stop)
    store = open_own(settings).store
    families = [each for each in settings.families() if each.projections]
    compared = workers.compared_of(settings, families)
    names = names_of(arguments.mode, settings, families[0], store)
    jobs = [workers.job_of(settings, each, names.suspects_topic) for each in compared]
    with closing(Watcher(settings.kafka)) as watcher:
        offsets = _offsets(settings, watcher, CassandraBookmarks(store), names, families[0])
        asked = [offsets.of(arguments, names.bookmarks(each.family)) for each in jobs]
        for job, wanted in zip(jobs, asked, strict=True):
            print("\n".join(f"{job.family.name}: {line}" for line in _asked(wanted)), flush=True)
        if not any(each.records for each in asked):
            return int(any(each.gone for each in asked))
        sinks = [hand_over(each, names, store, watcher, wait) for each in jobs]
        found = dict[str, ReplayResult]()
        try:
            with (
                OwnStream(settings, names, store, sinks) as beside,
                ShownProgress("events") as progress,
            ):
                if arguments.settle and not arguments.dry_run:
                    beside.begin()
                for job, sink, wanted in zip(jobs, sinks, asked, strict=True):
                    publish = _nowhere if arguments.dry_run else sink.publish
                    begun = Begun(progress, wait, partial(_beginnings, watcher, offsets.topics))
                    found[job.family.name] = begun.run(_job(arguments, job), publish, wanted)
                ends = beside.finish()
        except Interrupted as stopped:
            then = "what was found until then is handed over; begin again for the rest"
            raise stop.ended(then) from stopped
    return _report(arguments, found, asked, ends)


@dataclass(frozen=True, slots=True)
class Begun:
    """A replay that has begun: what its families share (see `streaming.again.replay.Replay`)."""

    progress: ShownProgress
    wait: Callable[[float], None]
    beginnings: Callable[[], Positions]

    def run(
        self, job: ReplayJob, publish: Callable[[Sequence[Suspect]], None], wanted: Replayable
    ) -> ReplayResult:
        """Replay the events of one family. Raises `Interrupted`, `Unreachable`, `SparkDied`."""
        if not wanted.records:
            return ReplayResult()
        look = reader(spark_session(job.settings), job)
        at_once = job.settings.kafka.max_offsets_per_batch
        replay = Replay(look, publish, self.progress, self.wait, at_once, self.beginnings)
        return replay.run(wanted)


def _offsets(
    settings: Settings, watcher: Watcher, bookmarks: Bookmarks, names: StreamNames, first: Family
) -> AskedOffsets:
    topics, own = (settings.kafka.topic_prefix,), frozenset(own_topics(settings.kafka))
    return AskedOffsets(watcher, topics, bookmarks, names.bookmarks(first), own)


def _report(
    arguments: argparse.Namespace,
    found: Mapping[str, ReplayResult],
    asked: Iterable[Replayable],
    ends: Iterable[Closing],
) -> int:
    """Print what was found; returns the exit code."""
    for family, each in found.items():
        for line in (*_told(family, each), *(_suspects(each) if arguments.dry_run else ())):
            print(line)
    waits, partly = False, any(each.gone for each in asked)
    for end in () if arguments.dry_run else ends:
        for line in end.lines():
            print(line)
        waits |= end.waits
    return int(waits or partly or any(each.gone or each.unread for each in found.values()))


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


def _told(family: str, found: ReplayResult) -> Iterator[str]:
    yield (
        f"{family}: {found.records} events were read, {found.keys} keys compared,"
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
    """The offsets of these topics that the command line asks for; ``own`` are not replayed.

    Bookmarks have been named for ``stream``, that of messages.
    """

    watcher: Watcher
    topics: tuple[str, ...]
    bookmarks: Bookmarks
    stream: str
    own: frozenset[str]

    def of(self, arguments: argparse.Namespace, stream: str) -> Replayable:
        """The range that Kafka still holds, up to what a family's ``stream`` has settled.

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
        newest = self.bookmarks.newest(stream)
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
