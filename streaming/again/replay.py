"""A replay: settled events are read again from Kafka, and their keys looked at, slice by slice.

::

    offsets ─▶ what Kafka still holds ─▶ slice: read, decode, look ─▶ suspects ─▶ handed over

It has a consumer of its own and does not change the stream's progress. A delete that is received
again equals the recorded one: it has the same write time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from checkpoints.bookmarks import OffsetRanges, Place, Positions
from reconcilers.words.errors import Refused, Retryable, SparkDied, Unreachable
from reconcilers.words.model import Kind, Suspect, Wake
from streaming.again.dry import without_writes
from streaming.again.rounds import GIVES_UP_AFTER, LONGEST_WAIT, SweepProgress
from streaming.pipeline.range_reader import RangeReader
from streaming.pipeline.slices import Closed, Slice, slices
from streaming.pipeline.spark_errors import OURS, cause_of, is_of_a_record, spark_there
from streaming.pipeline.worker import BatchLook, Connections, Job

SURROUNDINGS = re.compile(rf"{re.escape(OURS)}\.(Unreachable|Overloaded): ")
"""How Spark's message names a server that did not answer a worker."""


@dataclass(frozen=True, slots=True)
class ReplayJob(Job):
    """The stream's job, which writes no dead letters: undecodable events already have one."""

    def keep_dead_letters(self, letters: Iterable[Mapping[str, Any]]) -> None:
        """Do nothing: they are counted elsewhere."""


@dataclass(frozen=True, slots=True)
class DryReplayJob(ReplayJob):
    """A replay that only shows differences."""

    def connections(self) -> Connections:
        """This process's connections, which write nothing."""
        return without_writes(Job.connections(self))

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Do nothing: keys that the look would repeat one delay later are not published."""


@dataclass(frozen=True, slots=True)
class Replayable:
    """The wanted offsets that can be read; ``gone`` names the ones that Kafka has deleted."""

    begin: Positions
    end: Positions
    gone: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """The number of offsets."""
        return sum(end - self.begin[place] for place, end in self.end.items())


def replayable(begin: Positions, end: Positions, beginnings: Positions) -> Replayable:
    """The offsets from ``begin`` to before ``end`` that are not before Kafka's ``beginnings``.

    Partitions without any are left out.
    """
    first, last, gone = dict[Place, int](), dict[Place, int](), list[str]()
    for place, wanted in sorted(begin.items()):
        topic, number = place
        held, until = max(wanted, beginnings.get(place, wanted)), end.get(place, wanted)
        lost = min(held, until)
        if lost > wanted:
            gone.append(f"{topic}/{number} {wanted}–{lost - 1}: Kafka's retention has passed")
        if until > held:
            first[place], last[place] = held, until
    return Replayable(first, last, tuple(gone))


@dataclass(slots=True)
class ReplayResult:
    """What a replay has read. ``suspects`` are counts by projection and kind.

    ``unread`` names records that no worker could look at, ``gone`` those that Kafka deleted
    meanwhile.
    """

    records: int = 0
    keys: int = 0
    suspects: Counter[tuple[str, str]] = field(default_factory=Counter)
    undecodable: Counter[str] = field(default_factory=Counter)
    unread: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


class LookAtRanges(Protocol):
    """Looks at the keys in ranges of offsets; `reader` makes the real one."""

    def __call__(self, ranges: OffsetRanges) -> BatchLook:
        """Raises `Refused` or `SparkDied` if records may be the cause, `Unreachable` if servers."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Replays offsets, at most ``at_once`` at a time.

    ``publish`` hands suspects over; durable when it returns. ``wait`` (s) is called before each
    slice, and raises if the replay is stopped. ``beginnings`` reads Kafka's first offsets.
    """

    look: LookAtRanges
    publish: Callable[[Sequence[Suspect]], None]
    progress: SweepProgress
    wait: Callable[[float], None]
    at_once: int
    beginnings: Callable[[], Positions]

    def run(self, wanted: Replayable) -> ReplayResult:
        """Replay all wanted offsets. Raises `Unreachable`, `SparkDied`, and as ``wait`` does."""
        found, pieces = ReplayResult(), list(_slices(wanted.begin, wanted.end, self.at_once))
        self.progress.table("events", 0, len(pieces))
        for piece in pieces:
            self.wait(0)
            before = found.suspects.total()
            self._examine(piece, found)
            self.progress.round(1, piece.records, found.suspects.total() - before)
        return found

    def _examine(self, piece: Slice, found: ReplayResult) -> None:
        """Look at a slice. Records that are gone are left out; a refused slice is halved to one."""
        try:
            looked = self._looked(piece)
        except (Refused, SparkDied) as refused:
            self.wait(0)  # a signal to the whole process group ends Spark's workers too
            left = replayable(piece.begin, piece.end, self.beginnings())
            if left.gone:
                found.gone += left.gone
                for rest in _slices(left.begin, left.end, self.at_once):
                    self._examine(rest, found)
                return
            if isinstance(refused, SparkDied):
                raise
            if piece.records > 1:
                for half in _slices(piece.begin, piece.end, -(-piece.records // 2)):
                    self._examine(half, found)
                return
            ((topic, number), (offset, _)) = next(iter(piece.ranges.items()))
            found.unread.append(f"{topic}/{number} {offset}: {refused}")
            return
        self.publish(looked.suspects)
        found.records += piece.records
        found.keys += looked.examined
        found.suspects.update(
            (each.projection, str(each.kind or Kind.UNREADABLE)) for each in looked.suspects
        )
        found.undecodable.update(looked.bad)

    def _looked(self, piece: Slice) -> BatchLook:
        for failures in range(1, GIVES_UP_AFTER):
            try:
                return self.look(piece.ranges)
            except Retryable as failed:
                self.progress.waiting(str(failed))
                self.wait(min(2.0**failures, LONGEST_WAIT))
        return self.look(piece.ranges)


def _slices(begin: Positions, end: Positions, most: int) -> Iterator[Slice]:
    return slices(begin, [Closed(0, place, last) for place, last in end.items()], most)


def reader(spark: SparkSession, job: Job) -> LookAtRanges:
    """A look on Spark's workers, which raises `Refused`, `Unreachable`, `SparkDied`."""
    of_job = RangeReader(spark, job)

    def look(ranges: OffsetRanges) -> BatchLook:
        try:
            with spark_there():
                return of_job.look(ranges, frozenset())
        except (Py4JJavaError, PySparkException) as failed:
            told = str(failed)
            if SURROUNDINGS.search(told):
                raise Unreachable(cause_of(told)) from failed
            if is_of_a_record(told):
                raise Refused(cause_of(told)) from failed
            raise SparkDied(cause_of(told)) from failed

    return look
