"""Writes a canary to each node every second, while this process holds the lease for it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Protocol

from checkpoints.lease import Lease
from reconcilers.capture.chain import Mark
from reconcilers.capture.frontier import Canary, Node
from reconcilers.words.errors import AlreadyRunning, ReconcilerError, Refused, Unreachable
from reconcilers.words.model import Micros

log = logging.getLogger("reconciler")

RING_RESTS = 60.0
"""Seconds after a change of the ring in which a canary may reach another node."""
LEASE_EVERY = 10.0
"""Seconds until a lease that another process holds is tried again."""


PlacedCanaries = Mapping[str, Mapping[int, Canary]]
"""By each node's partition key, a canary for each of its lanes, in their order."""


class NodeRing(Protocol):
    """The nodes and their tokens; `streaming.tables.ring.Ring` is the real one."""

    def places(self) -> Mapping[Node, str]:
        """A partition key for each node, whose rows only this node stores."""

    def name(self) -> str:
        """A name of the nodes and their tokens."""

    def steady(self) -> bool:
        """Whether no node is joining, leaving or moving."""


class CanaryTable(Protocol):
    """Where canaries are written; `streaming.tables.Canaries` is the real one."""

    @property
    def ring(self) -> NodeRing:
        """Which node stores which rows."""

    def check(self) -> None:
        """Raise `Refused` if a canary that is written there proves nothing."""

    def newest(self) -> dict[Node, dict[int, Mark]]:
        """The newest canary of each node that answers, by lane; no lanes before a node's first."""

    def write(self, places: PlacedCanaries, partitions: int) -> frozenset[Node]:
        """Write them, for so many partitions. Returns the nodes that acknowledged theirs."""


class LanePlan(Protocol):
    """Which lanes lead to the topic's partitions; `streaming.topics.Lanes` is the real one."""

    @property
    def partitions(self) -> int:
        """How many partitions there are, as far as is known."""

    def of(self, place: str, used: Collection[int]) -> Sequence[int]:
        """The lanes of a place, in their order, given those in use. Raises `Retryable`."""


class WriterClock(Protocol):
    """Our clock; `streaming.canary.clock.MeasuredClock` is the real one."""

    def now(self) -> Micros:
        """Now (µs since the epoch)."""

    def steady(self) -> float:
        """The monotonic clock, in seconds."""

    def trouble(self) -> str | None:
        """Why the clock is not reliable; None while it is near the nodes' clocks."""


@dataclass(frozen=True, slots=True)
class Last:
    """The last canary sent to a node: its number, and when it was sent (µs, our clock; 0: never).

    ``lanes`` are those of that canary. ``acknowledged`` is the last number that the node has
    answered, by lane. In a lane that was not in use it is missing: canaries of other lanes are not
    expected there.
    """

    number: int
    sent_at: Micros = 0
    lanes: Collection[int] = ()
    acknowledged: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, written: Mapping[int, Mark]) -> Last:
        """The last canary as the table has it, in one lane or more."""
        newest = max(written.values())
        numbers = {lane: mark.number for lane, mark in written.items()}
        lanes = [lane for lane, number in numbers.items() if number == newest.number]
        return cls(newest.number, newest.at, lanes, numbers)

    def answered(self) -> Last:
        """A copy in which the node has acknowledged the last canary."""
        return replace(
            self, acknowledged={**self.acknowledged, **dict.fromkeys(self.lanes, self.number)}
        )


@dataclass(slots=True)
class CanaryWriter:
    """Writes canaries, in lanes that lead to each partition of the topic.

    Numbers are consecutive. The first one is a time of our clock, so that the numbers of a
    recreated table are above those of the table before.
    """

    table: CanaryTable
    lanes: LanePlan
    clock: WriterClock
    _last: dict[Node, Last] = field(default_factory=dict)
    _ring: tuple[str, float] = ("", float("-inf"))
    _silent: frozenset[Node] = frozenset()

    def begin(self) -> None:
        """Continue after the newest canaries in the table: another process may have written."""
        self._last.clear()
        self._ring = self._ring if self._ring[0] else (self.table.ring.name(), float("-inf"))

    def write(self) -> None:
        """Write one canary to each node, but none to a node whose newest cannot be read.

        Raises `Refused` if canaries prove nothing, `Retryable`.
        """
        self.table.check()
        places, steady = self.table.ring.places(), self._is_steady()
        if places.keys() - self._last.keys():
            self._go_on_after(self.table.newest())
        begun = {node: place for node, place in places.items() if node in self._last}
        canaries = {
            place: {lane: replace(each, steady=steady) for lane, each in self._next(node, place)}
            for node, place in begun.items()
        }
        acknowledged = self.table.write(canaries, self.lanes.partitions)
        for node in acknowledged:
            self._last[node] = self._last[node].answered()
        self._tell(frozenset(places) - acknowledged)

    def begin_anew(self, highest: int) -> None:
        """Write a canary that is later than all before it, and than ``highest``.

        It names no canary before it, so none is missed. Raises `Unreachable` if not every node took
        one, `Refused`, `Retryable`.
        """
        self._go_on_after(self.table.newest())
        for node, last in self._last.items():
            self._last[node] = Last(max(last.number, highest, self.clock.now()), 0, last.lanes)
        self.write()
        if self._silent:
            raise Unreachable(f"no canary was taken by {', '.join(sorted(self._silent))}")

    def _go_on_after(self, newest: Mapping[Node, Mapping[int, Mark]]) -> None:
        for node, lanes in newest.items():
            if node not in self._last:
                self._last[node] = Last.of(lanes) if lanes else Last(self.clock.now())

    def _next(self, node: Node, place: str) -> Iterator[tuple[int, Canary]]:
        """A node's next canary in each lane; it names the last one answered in that lane."""
        last = self._last[node]
        lanes, number, now = self.lanes.of(place, last.lanes), last.number + 1, self.clock.now()
        idle = max(now - last.sent_at, 0) if last.sent_at else 0
        self._last[node] = replace(last, number=number, sent_at=now, lanes=lanes)
        for lane in lanes:
            yield lane, Canary(node, number, last.acknowledged.get(lane, 0), idle=idle)

    def _is_steady(self) -> bool:
        ring, now = self.table.ring.name(), self.clock.steady()
        if ring != self._ring[0] or not self.table.ring.steady():
            self._ring = (ring, now)
        return now - self._ring[1] >= RING_RESTS

    def _tell(self, silent: frozenset[Node]) -> None:
        """Log once that a node takes no canary, and once that it does again."""
        for node in sorted(silent - self._silent):
            log.warning("node %s takes no canary: what is captured there is not known", node)
        for node in sorted(self._silent - silent):
            log.info("node %s takes canaries again", node)
        self._silent = silent


@dataclass(slots=True)
class CanaryKeeper:
    """Writes canaries every ``interval`` (s) while it holds the ``lease``: one process does."""

    writer: CanaryWriter
    lease: Lease
    interval: float
    _told: str | None = None

    def begin_anew(self, highest: int) -> None:
        """Make all later canaries later than any before; see `CanaryWriter.begin_anew`.

        Raises `AlreadyRunning` while another process writes canaries, `Refused` if our clock is
        wrong, and what the writer raises.
        """
        if trouble := self.writer.clock.trouble():
            raise Refused(trouble)
        self.lease.acquire()
        try:
            self.writer.begin_anew(highest)
        finally:
            self.lease.release()

    def run(self, stop: Event) -> None:
        """Write canaries until ``stop`` is set. What fails is tried again."""
        for pause in self._turns(stop):
            stop.wait(pause)

    def _turns(self, stop: Event) -> Iterator[float]:
        while not stop.is_set():
            try:
                if trouble := self.writer.clock.trouble():
                    self._tell(trouble)
                    yield LEASE_EVERY
                else:
                    yield from self._held(stop)
            except AlreadyRunning as other:
                log.debug("canaries are written elsewhere: %s", other)
                self._told = None
                yield LEASE_EVERY
            except ReconcilerError as failed:
                self._tell(str(failed))
                yield self.interval

    def _held(self, stop: Event) -> Iterator[float]:
        """Write while this process holds the lease, which each turn renews.

        It is kept while the table takes no canary: another process could not write any either. If
        our clock is wrong, it is released, because another process's clock may be right.
        """
        self.lease.acquire()
        self.writer.begin()
        clock = self.writer.clock
        renewed = clock.steady()
        while not stop.is_set() and clock.trouble() is None:
            if clock.steady() - renewed >= self.lease.renew_every.total_seconds():
                self.lease.acquire()
                renewed = clock.steady()
            self._write()
            yield self.interval
        self.lease.release()

    def _write(self) -> None:
        try:
            self.writer.write()
        except ReconcilerError as failed:
            self._tell(str(failed))
        else:
            self._tell("")

    def _tell(self, failure: str) -> None:
        """Log once why no canary is written, or, if ``failure`` is empty, that they are."""
        if failure != self._told:
            if failure:
                log.warning("no canary is written: %s", failure)
            else:
                log.info("writing canaries")
        self._told = failure
