"""Counters are corrected while users write: never away from the truth, never twice, in the end all.

Seeded runs of the product's own loop over a model of the mail server (`tests.property.tallies`).
Each property is a function of a seed, so that the everyday tests and the long ones differ in number
only; further down each rule is broken on purpose, which must be noticed.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest

from checkpoints.clock import HOUR
from checkpoints.tallies import Chunk
from reconcilers.capture.frontier import Marks, Proven
from reconcilers.counters import drift
from reconcilers.counters.drift import Interval, Observation
from reconcilers.declared.tally import Sum, Sums
from reconcilers.declared.writes import AddToCounter
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Micros
from streaming.counters import correct as correcting_module
from streaming.counters import schedule as watch_module
from streaming.counters.counter_findings import CorrectionLimits
from streaming.counters.recount import Recount
from tests.property import tally_runs
from tests.property.faults import CrashError, Outcome
from tests.property.seeded import assert_met, breaks, played
from tests.property.tallies import CLIMATES, Weather
from tests.property.tally_ports import POINTS, PointedRounds, Ports
from tests.property.tally_runs import ATTEMPTS, K, Run

Property = Callable[[int], Run]
FAULTS = 0.05


def a_run(seed: int, lost: float = 0.0, doubled: float = 0.0, repeated: float = 0.0) -> Run:
    draw = random.Random(seed)
    weather = Weather(
        lost=lost,
        doubled=doubled,
        repeated=repeated,
        writers=draw.randrange(1, 4),
        busy=draw.choice((0.3, 0.6, 0.9)),
    )
    return Run(seed, CLIMATES[seed % len(CLIMATES)], weather)


def traffic(run: Run, cycles: int = 15) -> Micros:
    return cycles * run.climate.cycle


def now_and_then(run: Run, share: float, most: int) -> Callable[[], bool]:
    """Is true for some, a few times in a run, not twice within the time of some looks."""
    left, not_before = [most], [0]

    def strikes() -> bool:
        world = run.world
        if not left[0] or world.now < not_before[0] or world.rng.random() >= share:
            return False
        left[0] -= 1
        not_before[0] = world.now + 2 * K * run.climate.cycle
        return True

    return strikes


# --- the properties -------------------------------------------------------------------------------


def no_loss_is_proven(run: Run) -> Run:
    """Nothing was lost, however busy a mailbox is: memory goes on."""
    assert run.world.lineage.watching() is not None, "a loss was proven, and there was none"
    return run


def nothing_is_corrected(run: Run) -> Run:
    assert not run.sent, f"corrected what was right: {run.sent[0]}"
    return run


def all_is_right(run: Run) -> Run:
    assert not run.wrong(), f"still wrong: {run.wrong()}, {run.open_findings()}"
    left = run.open_findings()
    assert not left, f"still open: {left[0].state}: {left[0].sentence}"
    return run


def without_faults(seed: int) -> Run:
    """Looks are made, at any moment; none tells an error, and nothing is corrected."""
    run = a_run(seed)
    run.ports.slowest = (0, run.climate.delay)[seed // 4 % 2]  # a look may take long
    run.play(traffic(run))
    assert not run.ports.false, run.ports.false[0]
    return nothing_is_corrected(no_loss_is_proven(run))


def with_a_straggler(seed: int) -> Run:
    """A counter that is written later than is agreed misleads all looks but the last of K."""
    run = a_run(seed)
    strikes = now_and_then(run, 0.4, most=20)
    climate, looks = run.climate, (K - 1) * run.climate.delay
    most = climate.delay + looks - climate.written
    late = partial(run.world.rng.randrange, climate.delay, most)
    run.world.straggles = lambda: late() if strikes() else 0
    run.play(traffic(run, 30))
    return nothing_is_corrected(no_loss_is_proven(run))


def with_faults(seed: int) -> Run:
    """Lost and doubled updates: exact after the traffic, and no correction makes it worse."""
    run = a_run(seed, FAULTS, FAULTS)
    run.play(traffic(run))
    assert not run.ports.false, run.ports.false[0]
    return all_is_right(no_loss_is_proven(run))


def with_unknown_outcomes(seed: int) -> Run:
    """Deltas without an answer: never sent again under their round; it converges."""
    run = a_run(seed, FAULTS, FAULTS)
    ends = run.world.now + traffic(run) + K * run.climate.cycle
    world, outcomes = run.world, tuple(Outcome)
    run.ports.outcome = lambda: world.rng.choice(outcomes) if world.now < ends else Outcome.APPLIED
    run.play(traffic(run))
    run.peace(K)
    assert not run.ports.false, run.ports.false[0]
    return all_is_right(no_loss_is_proven(run))


def with_crashes(seed: int) -> Run:
    """The process dies at some point of a correction, and begins again over what it kept."""
    run = a_run(seed, FAULTS, FAULTS)
    point = POINTS[seed // len(CLIMATES) % len(POINTS)]
    crashes = now_and_then(run, 0.7, most=4)

    def strike(where: str) -> None:
        if where == point and crashes():
            raise CrashError(point)

    run.ports.strike = strike
    run.play(traffic(run))
    run.peace(K)
    run.world.met[f"crash {point}"] += run.crashes
    return all_is_right(no_loss_is_proven(run))


def with_two_instances(seed: int) -> Run:
    """A second process over the same stores, while the first may be held up anywhere."""
    run = a_run(seed, FAULTS, FAULTS)
    second = run.accompany()
    stalls = now_and_then(run, 0.3, most=5)

    def strike(where: str) -> None:
        if not second.busy and where != "before the write" and stalls():
            run.world.met[f"held up {where}"] += 1
            run.world.pass_time(run.world.rng.randrange(3 * K * run.climate.cycle))

    run.ports.strike = strike
    run.play(traffic(run))
    run.peace(K)
    return all_is_right(no_loss_is_proven(run))


def with_batches_told_again(seed: int) -> Run:
    """Batches that are executed again, and old ones that are told of once more."""
    run = a_run(seed, repeated=0.2)
    run.play(traffic(run))
    assert not run.ports.false, run.ports.false[0]
    return nothing_is_corrected(no_loss_is_proven(run))


def with_a_stream_that_pauses(seed: int) -> Run:
    """Nobody reads for a while, as when a query waits for its restart: such looks take longer."""
    run = a_run(seed)
    strikes = now_and_then(run, 0.02, most=10)
    pause = partial(run.world.rng.randrange, 3 * run.climate.delay)
    run.world.pauses = lambda: pause() if strikes() else 0
    run.play(traffic(run, 30))
    assert not run.ports.false, run.ports.false[0]
    return nothing_is_corrected(no_loss_is_proven(run))


def with_slow_capture(seed: int) -> Run:
    """Capture takes much longer than the delay: what is found out is as true, only later."""
    run = a_run(seed, FAULTS, FAULTS)
    run.world.captured_in = 4 * run.climate.delay
    run.play(traffic(run))
    run.peace(16 * K)
    assert not run.ports.false, run.ports.false[0]
    return all_is_right(no_loss_is_proven(run))


def beside_read_repair(seed: int) -> Run:
    """The mail server resets counters by itself: both come to rest."""
    run = a_run(seed, FAULTS, FAULTS)
    run.world.repair_now_and_then(run.world.now + traffic(run, 30), run.climate.cycle)
    run.play(traffic(run, 10))
    run.live(traffic(run, 10))
    run.touch()
    run.peace()
    all_is_right(run)
    sent = len(run.sent)
    run.world.repair_now_and_then(run.world.now + traffic(run, 5), run.climate.delay)
    run.live(traffic(run, 6))
    assert len(run.sent) == sent, f"a fight over what is right: {run.sent[-1]}"
    return all_is_right(run)


def beside_wrong_read_repair(seed: int) -> Run:
    """It counts a copy twice, at every read: we give up, and say so."""
    run = a_run(seed)
    run.world.begin(run.world.now)
    run.touch()
    every = run.climate.delay // 2
    run.world.repair_now_and_then(run.world.now + traffic(run, 40), every, doubles=1)
    run.live(traffic(run, 30))
    mailboxes = len(run.world.mailboxes)
    assert len(run.sent) == ATTEMPTS * mailboxes, f"{len(run.sent)} corrections did not hold"
    assert [each.state for each in run.open_findings()] == [State.STUCK] * mailboxes
    return run


def with_events_lost(seed: int) -> Run:
    """Changes that capture never saw: their chunks are stale, and nobody knows they are.

    Memory ends when that is proven, and for no other reason.
    """
    run = a_run(seed)
    run.world.unseen_by_capture = now_and_then(run, 0.2, most=10)
    run.play(traffic(run, 30))
    assert run.world.met["unseen by capture"] or run.world.lineage.watching() is not None
    return nothing_is_corrected(run)


def with_rows_missing(seed: int) -> Run:
    """Rows that the projection lacks until the stream has repaired them, some looks later."""
    run = a_run(seed)
    run.world.unlisted = now_and_then(run, 0.1, most=10)
    run.play(traffic(run, 30))
    return nothing_is_corrected(no_loss_is_proven(run))


def with_a_past(seed: int) -> Run:
    """Old mail that nobody remembers, of which the list lacks some: no counter is lowered."""
    run = a_run(seed, FAULTS, FAULTS)
    run.world.forget_the_past(0.3)
    run.play(traffic(run))
    run.peace(K)
    lowered = [each for each in run.sent if min(each.deltas.values()) < 0]
    assert not lowered, f"the list lacks rows: {lowered[0]}"
    for each in run.open_findings():
        assert each.state is State.HELD
        known = lacks_what_it_names(run, each)  # of a message that was copied, so that it is known
        assert known or each.waits == drift.LIST_MAY_LACK_ROWS, each.told
    return run


def lacks_what_it_names(run: Run, finding: Finding) -> bool:
    """Whether it waits for a row that the truth has and the list has lost."""
    found = re.search(r"mailbox (\S+) differ from the truth, UID (\d+) among them$", finding.told)
    if found is None:
        return False
    place = UUID(found[1]), int(found[2])
    return place in run.world.truth and place not in run.world.listed


def with_stale_tallies(seed: int) -> Run:
    """What chunks were last counted to is wrong, whatever the reason."""
    run = a_run(seed)
    world = run.world

    def spoil() -> None:
        mailbox = world.rng.choice(world.mailboxes)
        wrong = {each: world.rng.randrange(5) for each in Sum}
        world.tallies.counted({mailbox: {world.rng.randrange(3): wrong}}, world.now)
        world.later(world.rng.randrange(3 * K * run.climate.cycle), spoil)

    spoil()
    run.play(traffic(run, 30))
    return nothing_is_corrected(run)


def with_all_of_it(seed: int) -> Run:
    """Everything at once, then a change in each mailbox and peace: exact in the end."""
    run = a_run(seed, FAULTS, FAULTS, repeated=0.01)
    world, ends = run.world, run.world.now + traffic(run)
    second = run.accompany()
    strikes = now_and_then(run, 0.2, most=5)

    def strike(where: str) -> None:
        if second.busy or not strikes():
            return
        if world.rng.random() < 0.5:
            raise CrashError(where)
        world.pass_time(world.rng.randrange(2 * run.climate.cycle) if "write" not in where else 0)

    run.ports.strike = strike
    run.ports.outcome = lambda: (
        world.rng.choice(tuple(Outcome)) if world.now < ends else Outcome.APPLIED
    )
    world.unlisted = now_and_then(run, 0.1, most=3)
    world.repair_now_and_then(ends, 3 * run.climate.cycle)
    run.play(traffic(run))
    run.live(traffic(run, 7))  # the last missing row is repaired
    world.unlisted = lambda: False
    run.touch()
    run.peace(5 * K)
    return all_is_right(run)


# --- each of them ---------------------------------------------------------------------------------

EVERY: dict[Property, dict[object, int]] = {
    without_faults: {"agrees": 100, "unsure": 100, "moved": 10},
    with_a_straggler: {"agrees": 100, "wrong": 5},
    with_faults: {"lost": 50, "doubled": 50, "corrected": 50, "verified": 30, "moved": 5},
    with_unknown_outcomes: {"corrected": 50, "verified": 30},
    with_crashes: {"corrected": 50, **{f"crash {point}": 1 for point in POINTS}},
    with_two_instances: {"corrected": 50, "held up after the claim": 1},
    with_batches_told_again: {"agrees": 100, "told again": 100},
    with_a_stream_that_pauses: {"agrees": 100},
    with_slow_capture: {"corrected": 30},
    beside_read_repair: {"corrected": 20, "read repairs": 100},
    beside_wrong_read_repair: {"stuck": 5},
    with_events_lost: {"unseen by capture": 20, "wrong": 20, "loss proven": 5},
    with_rows_missing: {"unlisted": 20, "wrong": 10, "deferred": 2},
    with_a_past: {"corrected": 10, "held": 10, "lost long ago": 10},
    with_stale_tallies: {"wrong": 20},
    with_all_of_it: {"corrected": 30},
}
"""With what the runs have to meet, or they prove little."""


def met_by(holds: Property, seeds: Iterable[int]) -> Counter[object]:
    found: Counter[object] = Counter()
    for run in played(holds, seeds):
        found.update(run.world.met)
        found.update(run.counts)
        found.update(run.told)
        found["corrected"] += len(run.sent)
    return found


FEW = 4 * len(CLIMATES)
"""Runs of a property in the everyday tests, in which most meet all that they have to."""
MORE = len(POINTS) * len(CLIMATES)
RARE = (with_a_straggler, with_crashes, beside_read_repair)
"""These need more runs for that: a crash at each point in each climate."""


@pytest.mark.parametrize("holds", EVERY, ids=lambda holds: holds.__name__)
def test_counters(holds: Property) -> None:
    assert_met(met_by(holds, range(MORE if holds in RARE else FEW)), EVERY[holds])


MANY_MORE = range(1_000_000, 1_001_000)
OWN, AROUND = list(EVERY)[:8], list(EVERY)[8:]
"""What goes wrong in the reconciler first; two halves that take equally long."""


@pytest.mark.long(part="counters-crashes")
@pytest.mark.parametrize("holds", OWN, ids=lambda holds: holds.__name__)
def test_counters_in_many_more_runs(holds: Property) -> None:
    met_by(holds, MANY_MORE)


@pytest.mark.long(part="counters-losses")
@pytest.mark.parametrize("holds", AROUND, ids=lambda holds: holds.__name__)
def test_counters_in_many_more_runs_beside_losses(holds: Property) -> None:
    met_by(holds, MANY_MORE)


# --- the rules, broken on purpose -----------------------------------------------------------------


def is_broken(holds: Property) -> bool:
    first = SOON.get(holds, 0)
    return breaks(holds, range(first, first + 300))


def no_changes(look: Observation, changes: int) -> Interval:
    """What may be under way is not asked."""
    return drift.interval_of(look, 0)


def whatever_is_proven(marks: Marks, proven: Proven) -> bool:
    """A look is complete at once."""
    return bool(proven)


def always(rounds: PointedRounds, tally: str, key: str, after: int) -> bool:
    """The round is claimed, whoever else has done so."""
    return rounds.claimed.claim(tally, key, rounds.claimed.current(tally, key))


def sent_again(send: Callable[[Ports, AddToCounter], None]) -> object:
    """A delta that is not answered is sent once more, as a driver's retry policy may."""

    def add(ports: Ports, write: AddToCounter) -> None:
        try:
            send(ports, write)
        except Unreachable:
            send(ports, write)

    return add


def never_marked(chunk: Chunk, slack: Micros) -> bool:
    """A chunk is counted once and believed for ever."""
    return chunk.counted_at is None


def believed(recount: Recount) -> Sums:
    """What chunks were last counted to is not held against the truth."""
    recount.sums = recount.counting.sums(recount.left)
    recount.left.clear()
    return recount.sums


def the_whole_drift(wrong: Sums, now: Sums) -> Sums:
    """Not what is sure, but what is seen."""
    return {each: -now[each] for each in wrong if now[each]}


def any_time(*limits: object) -> CorrectionLimits:
    """A delta may be sent long after its claim."""
    return replace(CorrectionLimits(*limits), prompt=HOUR)  # type: ignore[arg-type]


def lowered_all_the_same(deltas: Sums) -> Sums:
    """Whatever the list may lack."""
    return deltas


def as_often_as_it_takes(*limits: object) -> CorrectionLimits:
    """Nothing is ever stuck."""
    return replace(CorrectionLimits(*limits), attempts=1_000)  # type: ignore[arg-type]


BROKEN: tuple[tuple[object, str, object, Property], ...] = (
    (watch_module, "interval_of", no_changes, without_faults),
    (tally_runs, "K", 1, with_a_straggler),
    (Marks, "passed", whatever_is_proven, without_faults),
    (Chunk, "stale", never_marked, without_faults),
    (correcting_module, "correction", the_whole_drift, with_faults),
    (Ports, "add", sent_again(Ports.add), with_unknown_outcomes),
    (PointedRounds, "claim", always, with_two_instances),
    (tally_runs, "CorrectionLimits", any_time, with_two_instances),
    (tally_runs, "CorrectionLimits", as_often_as_it_takes, beside_wrong_read_repair),
    (correcting_module, "raising", lowered_all_the_same, with_a_past),
    (Recount, "step", believed, with_events_lost),
    (Recount, "step", believed, with_rows_missing),
    (Recount, "step", believed, with_stale_tallies),
)
SOON: dict[Property, int] = {with_events_lost: 157, with_a_straggler: 173, with_faults: 145}
"""A seed that notices it: all the runs from 0 on would take minutes."""


@pytest.mark.parametrize(
    ("where", "name", "rule", "holds"),
    BROKEN,
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_a_broken_rule_is_noticed(
    where: object, name: str, rule: object, holds: Property, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, rule)
    assert is_broken(holds)
