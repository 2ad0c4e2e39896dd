"""One run: a world, one or more reconcilers of its counters, and what must hold at its end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Event
from types import SimpleNamespace
from unittest.mock import patch
from uuid import UUID

from prometheus_client import CollectorRegistry

from checkpoints.losses import Loss, end_memory
from reconcilers.counters.drift import Evidence
from reconcilers.declared.tally import Sum, Sums
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import ReconcilerError
from reconcilers.words.model import Micros
from streaming.counters import changed_mailboxes, screening_queue
from streaming.counters import loop as loop_module
from streaming.counters.both_sides import BothSides
from streaming.counters.changed_mailboxes import ChangedMailboxes
from streaming.counters.correct import Corrector
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_findings import CorrectionLimits, CounterFindings
from streaming.counters.counter_row import CounterRows, Owners
from streaming.counters.look_rules import LookRules
from streaming.counters.loop import CounterLoop
from streaming.counters.observe import CounterObserver
from streaming.counters.open_messages import OpenMessages
from streaming.counters.pending_counter import PendingCounter, WaitingLook
from streaming.counters.progress import CounterProgress
from streaming.counters.recent_changes import RecentChanges
from streaming.counters.schedule import CounterScheduler
from streaming.counters.screening import Screening
from streaming.counters.screening_queue import MarkedHours, ScreeningQueue
from streaming.counters.unmarked_changes import LossRules, WatchedTallies
from streaming.monitoring.metrics import Metrics
from streaming.steps.parking import Parking
from tests.builders.counter_breakers import correction_breaker
from tests.builders.permits import nothing_paused
from tests.fakes.checkpoints.losses import MemoryLosses
from tests.property.faults import CrashError
from tests.property.mail import FAMILY, SECOND, time_uuid
from tests.property.tallies import FAMILIES, WIDTH, Climate, RowKey, Weather, World
from tests.property.tally_ports import (
    Inbox,
    PointedJournal,
    PointedRounds,
    Ports,
    Sent,
    SlowTallies,
    Until,
)

K = 3
ATTEMPTS = 3
NO_LIMIT = dict.fromkeys(Sum, 1_000_000_000)


@cache
def metrics() -> Metrics:
    """One for all runs: nothing here asks it."""
    return Metrics(CollectorRegistry())


class Observed(CounterScheduler):
    """Holds each look against the true error, and tells the ports which look a correction has."""

    def _look(self, watched: PendingCounter, mailboxes: frozenset[UUID]) -> None:
        super()._look(watched, mailboxes)
        tables(self).ended[row_of(watched)] = self.clock()

    def _judge(self, watched: PendingCounter, look: WaitingLook) -> None:
        super()._judge(watched, look)
        if watched.looks and watched.looks[-1].at == look.observation.at:
            tables(self).judge(row_of(watched), watched.looks[-1])

    def _correct(self, watched: PendingCounter, wrong: Sums) -> None:
        """The looks are gone after it."""
        tables(self).judge(row_of(watched), watched.looks[-1])
        tables(self).looked_at[row_of(watched)] = watched.looks[-1].at
        super()._correct(watched, wrong)


def row_of(watched: PendingCounter) -> RowKey:
    return watched.counter.tally.name, watched.counter.key


def tables(watch: CounterScheduler) -> Ports:
    assert isinstance(watch.observer.tables, Ports)
    return watch.observer.tables


@dataclass(slots=True)
class Instance:
    """A process of the product, over stores that outlive it."""

    ports: Ports
    rounds: PointedRounds
    journal: PointedJournal
    counts: Counter[str]
    told: Counter[str]
    inbox: Inbox = field(init=False)
    loop: CounterLoop = field(init=False)
    busy: bool = False

    def __post_init__(self) -> None:
        world = self.ports.world
        self.inbox = Inbox(world)
        world.streams.append(self.inbox.put)
        clock = lambda: world.now  # noqa: E731
        tallies = self._tallies(clock)
        sides = BothSides(FAMILY, self.ports, self.ports, world.lineage, world.climate.delay)
        counting = MailboxCounter(
            sides=sides,
            tallies=tallies.kept,
            watched=tallies,
            clock=clock,
            width=WIDTH,
            open=OpenMessages(sides),
        )
        owners = Owners(self.ports)
        parking = {each.name: Parking(each, self.journal, clock) for each in FAMILIES}
        limits = CorrectionLimits(ATTEMPTS, NO_LIMIT, 10 * world.climate.cycle, world.climate.delay)
        findings = CounterFindings(
            journal=self.journal, parking=parking, clock=clock, limits=limits, told=self._hear
        )
        correcting = Corrector(
            findings=findings,
            tables=self.ports,
            counting=counting,
            rounds=self.rounds,
            breaker=correction_breaker(self.journal, clock, metrics=metrics()),
            trouble=lambda: None,
            pauses=nothing_paused,
            steady=lambda: world.now / 1e6,
        )
        climate = world.climate
        recent = RecentChanges(0.0, lambda: world.now / 1e6)
        watch = Observed(
            observer=CounterObserver(
                self.ports,
                counting,
                owners,
                self.rounds,
                self.ports,
                clock,
                recent,
                tallies.heard,
            ),
            findings=findings,
            correcting=correcting,
            clock=clock,
            rules=LookRules(climate.delay, climate.gather, Evidence(K, 2 * K), climate.listener),
            count=self._count,
        )
        counters = CounterRows(FAMILIES, owners)
        self.loop = CounterLoop(
            scheduler=watch,
            changed=ChangedMailboxes(
                watch,
                counters,
                ScreeningQueue(MarkedHours(world.tallies.marked_in), clock, watch.rules),
                self._screening(tallies, clock).of,
                at_once=2,
            ),
            counters=counters,
            findings=findings,
            asked=(),
            progress=CounterProgress(metrics()),
            _queue=self.inbox,  # type: ignore[arg-type]
        )

    def _tallies(self, clock: Callable[[], Micros]) -> WatchedTallies:
        delay = self.ports.world.climate.delay
        return WatchedTallies(
            kept=SlowTallies(self.ports),
            lineage=self.ports.world.lineage,
            frontier=self.ports,
            clock=clock,
            rules=LossRules(slack=delay // 2, expiries=delay),
            lost=self._lost,
        )

    def _lost(self, why: str) -> None:
        world = self.ports.world
        self.counts.update(["loss proven"])
        end_memory(world.lineage, MemoryLosses().record, Loss(world.now, why))

    def _screening(self, tallies: WatchedTallies, clock: Callable[[], Micros]) -> Screening:
        kept, slack = [each for family in FAMILIES for each in family.tallies], tallies.rules.slack
        return Screening(self.ports, tallies.kept, kept, clock, WIDTH, slack, since=0, rows=50_000)

    def _count(self, _tally: str, outcome: str, number: int) -> None:
        self.counts[outcome] += number

    def _hear(self, finding: Finding, ended: State | None) -> None:
        self.told[(ended or finding.state).value] += 1

    def live(self, until: Micros) -> None:
        """Work until a time. Raises `CrashError` when it dies."""
        self.busy = True
        try:
            self.loop.run(Until(self.ports.world, until))
        finally:
            self.busy = False

    def turn(self) -> None:
        """Some work; while servers do not answer, none."""
        self.busy = True
        try:
            self.loop._turn(Event())
        except ReconcilerError:
            self.ports.world.pass_time(self.ports.world.climate.latest)
        finally:
            self.busy = False

    def die(self) -> None:
        """Its memory is gone."""
        self.ports.world.streams.remove(self.inbox.put)


@dataclass(slots=True)
class Run:
    """A world and the processes beside it."""

    seed: int
    climate: Climate
    weather: Weather = field(default_factory=Weather)
    world: World = field(init=False)
    ports: Ports = field(init=False)
    rounds: PointedRounds = field(init=False)
    journal: PointedJournal = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    crashes: int = 0

    def __post_init__(self) -> None:
        rng = random.Random(self.seed)
        self.world = World(self.climate, self.weather, rng)
        if rng.random() < 0.3:
            self.world.mailboxes = self.world.mailboxes[:1]
        self.world.fill(rng.randrange(13))
        self.ports = Ports(self.world)
        self.rounds = PointedRounds(self.ports)
        self.journal = PointedJournal(self.ports)

    @property
    def sent(self) -> list[Sent]:
        """Every delta that was sent."""
        return self.ports.sent

    def instance(self) -> Instance:
        """A process that begins now."""
        ports = replace(self.ports, looked_at={}, ended={})
        return Instance(ports, self.rounds, self.journal, self.counts, self.told)

    # --- its course

    def play(self, traffic: Micros) -> None:
        """Traffic for so long, then peace for as long as it takes to be right."""
        self.world.begin(self.world.now + traffic)
        self.live(traffic)
        self.peace()

    def live(self, duration: Micros) -> None:
        """One process, started again when it dies."""
        until = self.world.now + duration
        clock = SimpleNamespace(monotonic=lambda: self.world.now / 1e6)
        tick = patch.object(loop_module, "TICK", self.climate.idle / 1e6)
        with ExitStack() as patched:
            for each in (loop_module, changed_mailboxes, screening_queue):
                patched.enter_context(patch.object(each, "time", clock))
            patched.enter_context(tick)
            while self.world.now < until:
                instance = self.instance()
                try:
                    instance.live(until)
                except CrashError:
                    self.crashes += 1
                    self.world.pass_time(self.world.rng.randrange(self.climate.delay))
                instance.die()

    def peace(self, looks: int = 4 * K) -> None:
        """Time for so many looks, after all that is under way has come out."""
        self.live(self.climate.cycle * (1 + looks))

    def accompany(self) -> Instance:
        """A second process beside: it works whenever a call of the first one takes time."""
        second = self.instance()

        def turn() -> None:
            if not second.busy:
                second.turn()
            self.world.later(self.world.rng.randrange(SECOND), turn)

        turn()
        return second

    def touch(self) -> None:
        """A change in each mailbox: whatever is wrong there is looked at."""
        for mailbox in self.world.mailboxes:
            self.world.append(mailbox, time_uuid(self.world.now, mailbox.node % 1000))

    # --- what must hold

    def open_findings(self) -> list[Finding]:
        """What the journal holds."""
        return [each for family in FAMILIES for each in self.journal.open_findings(family)]

    def wrong(self) -> dict[RowKey, Sums]:
        """The counters that are wrong now."""
        errors = {key: self.world.error(key) for key, _ in self.world.rows()}
        return {key: error for key, error in errors.items() if any(error.values())}
