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
"""Seconds after a change of the ring in which a canary may have reached another node."""
LEASE_EVERY = 10.0
"""Seconds until a lease that another process holds is asked for again."""


PlacedCanaries = Mapping[str, Mapping[int, Canary]]
"""At each node's partition key a canary, in each of its lanes in their order."""


class NodeRing(Protocol):
    """The nodes and their tokens; `streaming.tables.ring.Ring` is the real one."""

    def places(self) -> Mapping[Node, str]:
        """A partition key for each node, of which only it keeps the rows."""

    def name(self) -> str:
        """Names the nodes and their tokens."""

    def steady(self) -> bool:
        """Whether no node is joining, leaving or moving."""


class CanaryTable(Protocol):
    """Where canaries are written; `streaming.tables.Canaries` is the real one."""

    @property
    def ring(self) -> NodeRing:
        """Who keeps which rows."""

    def check(self) -> None:
        """Raises `Refused` where a canary that is written there proves nothing."""

    def newest(self) -> dict[Node, dict[int, Mark]]:
        """Of each node that answers the newest canary in each lane; no lane before its first."""

    def write(self, places: PlacedCanaries, partitions: int) -> frozenset[Node]:
        """Write them, for so many partitions; returns the nodes that have acknowledged theirs."""


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
        """The time, µs."""

    def steady(self) -> float:
        """Seconds that only go up."""

    def trouble(self) -> str | None:
        """Why it is not to be trusted; None while it is near the nodes' clocks."""


@dataclass(frozen=True, slots=True)
class Last:
    """What a node was sent: the number of the last canary, and when (µs, our clock; 0: never).

    ``lanes`` are those that it was sent in. ``acknowledged`` is the last number that the node has
    answered, by lane. In a lane that was not in use, nothing was: a canary that came by the others
    is no reason to miss one there.
    """

    number: int
    sent_at: Micros = 0
    lanes: Collection[int] = ()
    acknowledged: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, written: Mapping[int, Mark]) -> Last:
        """As the table has it, in one lane or more."""
        newest = max(written.values())
        numbers = {lane: mark.number for lane, mark in written.items()}
        lanes = [lane for lane, number in numbers.items() if number == newest.number]
        return cls(newest.number, newest.at, lanes, numbers)

    def answered(self) -> Last:
        """The node has acknowledged the last one."""
        return replace(
            self, acknowledged={**self.acknowledged, **dict.fromkeys(self.lanes, self.number)}
        )


@dataclass(slots=True)
class CanaryWriter:
    """Writes canaries, in lanes that lead to each partition of the topic.

    Numbers are counted on: our clock only gives the very first one, so that a table that was made
    anew goes on above the numbers of the one before.
    """

    table: CanaryTable
    lanes: LanePlan
    clock: WriterClock
    _last: dict[Node, Last] = field(default_factory=dict)
    _ring: tuple[str, float] = ("", float("-inf"))
    _silent: frozenset[Node] = frozenset()

    def begin(self) -> None:
        """Another process may have written since: go on after what is there."""
        self._last.clear()
        self._ring = self._ring if self._ring[0] else (self.table.ring.name(), float("-inf"))

    def write(self) -> None:
        """One canary to each node; none yet to one whose newest cannot be read.

        Raises `Refused` where canaries prove nothing, `Retryable`.
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
        """Write a canary that is later than all before it, whatever the table or a clock says.

        Above ``highest``, too. It names none before it, so none is missed. Raises `Unreachable`
        where not every node took one, `Refused`, `Retryable`.
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
        """The next canary of a node, lane by lane: each names the last answered one of its own."""
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
        """Of a node that takes no canary, once; and when it does again."""
        for node in sorted(silent - self._silent):
            log.warning("node %s takes no canary: what is captured there is not known", node)
        for node in sorted(self._silent - silent):
            log.info("node %s takes canaries again", node)
        self._silent = silent


@dataclass(slots=True)
class CanaryKeeper:
    """One process at a time writes canaries, each ``interval`` (s): it holds the ``lease``."""

    writer: CanaryWriter
    lease: Lease
    interval: float
    _told: str | None = None

    def begin_anew(self, highest: int) -> None:
        """Have all later canaries be later than any before: `CanaryWriter.begin_anew`.

        Raises `AlreadyRunning` while another process writes them, `Refused` where our clock is
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
        """Until told to stop. What fails is tried again."""
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
        """While the lease lasts; it is renewed by the turns themselves.

        It is kept while the table takes none: another process could not write any either. Where our
        clock is wrong it is given up, for that of another process may be right.
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
        """Why none is written, empty when they are; each once."""
        if failure != self._told:
            if failure:
                log.warning("no canary is written: %s", failure)
            else:
                log.info("writing canaries")
        self._told = failure
