"""What comes back is counted where it is about to be written, and comes at the limit's pace."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.pauses import Resumed
from reconcilers.limits.breakers import OF_ROWS, Breaker, BreakerLimits
from reconcilers.limits.ceiling import MINUTE, Allowance
from reconcilers.limits.pause import Pause
from reconcilers.limits.write_target import ALL
from reconcilers.rows.finding import Finding, State
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming.pipeline.batches import Batches
from streaming.pipeline.held_looks import HeldLooks
from streaming.pipeline.open_finding import opened
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook
from streaming.settings import Mode
from streaming.steps.permit import ABOVE
from tests.builders.findings import acceptance
from tests.builders.found import finding_at, suspect_at
from tests.builders.rows import MAILBOX, NOW, PROJECTION, SECOND, SLOT
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.unit.stream.test_batches import HOUR, MemoryPorts, batches

NAME = PROJECTION.name
MOST = 5
"""Suspects a minute, of `batches`."""


def finding(uid: int, **changes: Any) -> Finding:
    held = {"kind": Kind.EXTRA_ROW, "state": State.HELD, "waits": Waiting(Wait.BREAKER, "breaker")}
    return finding_at(uid, **{**held, **changes})


def coming_back(number: int) -> BatchLook:
    found = [suspect_at(uid, Kind.EXTRA_ROW, looked_again=True) for uid in range(number)]
    return BatchLook(found, examined=number)


def piece(number: int, at: Micros = NOW) -> Slice:
    return Slice({("t", 0): number}, {("t", 0): number + 1}, at, at)


def opened_by(decisions: Batches) -> set[Breaker]:
    decisions.admit(coming_back(MOST + 1), piece(1))
    return set(decisions.admission.breakers.journal.breakers())


# --- what counts ---------------------------------------------------------------------------------


def counted_then_again(held: bool, after: Micros) -> set[Breaker]:
    """As many as the limit are counted, and come again so long (µs) after, beside a new one."""
    decisions = batches(MemoryPorts(MemoryJournal(lambda: NOW)))
    decisions.start()
    decisions.admission.breakers.put_off_for = 300 * SECOND
    decisions.admit(coming_back(MOST), piece(1))
    if held:
        for uid in range(MOST):
            decisions.open_findings.index.keep(finding(uid))
    look = [*coming_back(MOST).suspects, suspect_at(90, Kind.EXTRA_ROW)]
    decisions.admit(BatchLook(look, examined=1), piece(2, NOW + after))
    return set(decisions.admission.breakers.journal.breakers())


def test_what_no_look_could_decide_counts_once_until_it_is_judged() -> None:
    assert not counted_then_again(held=False, after=200 * SECOND)
    assert counted_then_again(held=False, after=301 * SECOND)


def test_what_was_held_counts_when_it_is_let_go() -> None:
    """Else a minute would repair what was let go, and as much again that is new."""
    assert not counted_then_again(held=True, after=100 * SECOND)
    assert counted_then_again(held=True, after=200 * SECOND)


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        (None, True),
        ({"state": State.HELD}, True),
        ({"state": State.OBSERVED}, True),
        ({"state": State.INTENDED, "attempts": 1}, False),
        ({"state": State.STUCK, "attempts": 3}, False),
        ({"state": State.HELD, "attempts": 1}, False),
        ({"state": State.REPORTED, "kind": Kind.AMBIGUOUS_RANGE_DELETE, "waits": None}, False),
        ({"state": State.HELD, "accepted": acceptance(Kind.EXTRA_ROW)}, False),
        ({"waits": ABOVE}, False),
    ],
)
def test_what_has_no_write_yet_counts_when_it_comes_back(
    changes: dict[str, Any] | None, *, counts: bool
) -> None:
    """None stands for no finding at all."""
    decisions = batches(MemoryPorts(MemoryJournal(lambda: NOW)))
    for uid in range(MOST + 1):
        if changes is not None:
            decisions.open_findings.index.keep(finding(uid, **changes))
    assert opened_by(decisions) == (OF_ROWS if counts else set())


@pytest.mark.parametrize("looked_again", [False, True])
@pytest.mark.parametrize(
    "kind",
    [Kind.INCOMPLETE_TRUTH_ROW, Kind.INCOMPLETE_IN_BOTH, Kind.DUPLICATE_UID, Kind.UNRESOLVED],
)
def test_what_a_look_can_only_report_counts_never(kind: Kind, *, looked_again: bool) -> None:
    decisions = batches(MemoryPorts(MemoryJournal(lambda: NOW)))
    found = coming_back(MOST + 1)
    found.suspects = [
        replace(each, kind=kind, looked_again=looked_again) for each in found.suspects
    ]
    assert decisions.admit(found, piece(1)).repairs_wait is None
    assert decisions.admission.breakers.journal.breakers() == {}


def test_where_nothing_may_be_written_nothing_that_comes_back_counts() -> None:
    paused = MemoryPorts(MemoryJournal(lambda: NOW))
    paused.pauses.begin(Pause(ALL, NOW, "alice", "a look"))
    assert opened_by(batches(paused)) == set()
    clocks = batches(MemoryPorts(MemoryJournal(lambda: NOW)))
    clocks.admission.clock_trouble = lambda: Waiting(Wait.CLOCKS, "differ")
    assert opened_by(clocks) == set()
    observer = batches(MemoryPorts(MemoryJournal(lambda: NOW)))
    observer.admission.mode = Mode.OBSERVE
    assert opened_by(observer) == set()


@pytest.mark.parametrize("what", [ALL, "removals", NAME])
def test_what_a_person_has_paused_counts_when_it_comes_back(what: str) -> None:
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    pause = Pause(what, NOW, "alice", "a look")
    ports.pauses.begin(pause)
    decisions = batches(ports)
    back = coming_back(MOST + 1)
    new = BatchLook([replace(each, looked_again=False) for each in back.suspects], MOST + 1)
    decisions.admit(new, piece(1))
    assert ports.journal.breakers() == {}
    ports.pauses.end(pause, Resumed(NOW, "bob", ""))
    ports.asked += 2
    decisions.admit(back, piece(2))
    assert set(ports.journal.breakers()) == OF_ROWS


def test_both_looks_of_a_removal_count_once_and_one_that_goes_on_coming_counts_again() -> None:
    """Else what comes back at half the limit's pace is counted at all of it, and opens it."""
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    decisions = batches(ports)
    for number in range(2):
        decisions.admit(coming_back(MOST - 1), piece(number, NOW + number * 55 * SECOND))
    assert ports.journal.breakers() == {}
    (first, second) = decisions.admission.breakers._state.recent
    assert (first.again, second.again) == (MOST - 1, 0)
    decisions.admit(coming_back(MOST + 1), piece(2, NOW + 2 * MINUTE))
    assert set(ports.journal.breakers()) == OF_ROWS


def test_removals_that_are_held_do_not_count_as_repairs() -> None:
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    ports.journal.open_breaker(Breaker.REMOVALS, "as it was", NOW)
    decisions = batches(ports)
    decisions.admission.breakers.recall()
    assert opened_by(decisions) == {Breaker.REMOVALS}


def test_what_waits_for_a_table_that_refuses_counts_when_it_takes_writes() -> None:
    decisions = batches(MemoryPorts(MemoryJournal(lambda: NOW)))
    parked = finding(0, slot=WHOLE_TABLE, kind=Kind.TABLE_REFUSES, state=State.REPORTED)
    decisions.open_findings.index.keep(parked)
    assert opened_by(decisions) == set()
    decisions.open_findings.index.drop(parked.projection, parked.slot)
    decisions.admit(coming_back(MOST + 1), piece(2))
    assert set(decisions.admission.breakers.journal.breakers()) == OF_ROWS


# --- at which pace -------------------------------------------------------------------------------

LIMITS = BreakerLimits()


def test_a_week_of_observed_findings_comes_out_at_the_limits_rate_and_opens_nothing() -> None:
    """Four wrong removals a minute, below every limit; then the mode is switched to repair."""
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    now = [0.0]
    decisions = batches(ports)
    decisions.admission.breakers.limits = LIMITS
    decisions.open_findings.held_looks = HeldLooks(NAME, LIMITS, lambda: now[0])
    week = [
        finding(uid, state=State.OBSERVED, next_look=NOW - uid % 600 * SECOND)
        for uid in range(4 * 60 * 24)
    ]
    for each in week:
        ports.journal.put(each)
    came: Counter[int] = Counter()
    wakes = decisions.start()
    number = 0
    while now[0] < 30 * 60:
        at = NOW + round(now[0] * SECOND)
        came[int(now[0])] += len(wakes)
        if wakes:
            number += 1
            found = [
                suspect_at(wake.slot or SLOT, Kind.EXTRA_ROW, looked_again=True) for wake in wakes
            ]
            admitted = decisions.admit(BatchLook(found, examined=len(found)), piece(number, at))
            assert admitted.repairs_wait is None
            assert admitted.removals_wait is None
        now[0] += 5.0
        wakes = decisions.later_looks(NOW + round(now[0] * SECOND))
    for begins in range(0, 30 * 60, 5):
        a_minute = sum(came[second] for second in range(begins, begins + 60))
        assert a_minute <= LIMITS.removals_per_minute
    assert sum(came.values()) > 30 * LIMITS.removals_per_minute // 2
    assert ports.journal.breakers() == {}


def test_what_is_resumed_comes_at_the_same_pace() -> None:
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    now = [0.0]
    for uid in range(1_000):
        ports.journal.put(finding(uid))
    ports.journal.open_breaker(Breaker.REMOVALS, "as it was", NOW)
    decisions = batches(ports)
    decisions.open_findings.held_looks = HeldLooks(NAME, LIMITS, lambda: now[0])
    assert decisions.start() == []
    ports.journal.close_breakers(NOW)
    assert len(decisions.later_looks(NOW)) <= LIMITS.removals_per_minute // 10
    now[0] += 60
    assert len(decisions.later_looks(NOW)) <= LIMITS.removals_per_minute // 10


def test_others_do_not_wait_behind_removals() -> None:
    looks = HeldLooks(NAME, LIMITS, lambda: 0.0)
    looks.add(opened(finding(uid)) for uid in range(1_000))
    looks.add([opened(finding(5_000, kind=Kind.MISSING_ROW))])
    assert (NAME, Slot(MAILBOX, 5_000)) in set(looks.take(lambda _: True))


def test_what_is_closed_meanwhile_does_not_come_back_and_what_waits_comes_once() -> None:
    looks = HeldLooks(NAME, LIMITS, lambda: 0.0)
    for _ in range(2):
        looks.add([opened(finding(1)), opened(finding(2))])
    assert list(looks.take(lambda place: place[1] == Slot(MAILBOX, 2))) == [
        (NAME, Slot(MAILBOX, 2))
    ]
    assert list(looks.take(lambda _: True)) == []


def test_an_observer_looks_at_all_of_them_at_once() -> None:
    looks = HeldLooks(NAME, None)
    looks.add(opened(finding(uid)) for uid in range(5_000))
    assert len(list(looks.take(lambda _: True))) == 5_000


@given(
    a_minute=st.integers(1, 1_000),
    steps=st.lists(st.tuples(st.integers(0, 40 * SECOND), st.integers(0, 2_000)), max_size=60),
)
def test_no_minute_lets_more_come_back_than_it_may(
    a_minute: int, steps: list[tuple[Micros, int]]
) -> None:
    allowed, taken, now = Allowance(a_minute), [], 0
    for later, wanted in steps:
        now += later
        allowed = allowed.at_time(now)
        number = min(wanted, allowed.whole)
        allowed = allowed.less(number)
        taken.append((now, number))
        a_minute_of = sum(number for at, number in taken if now - at < MINUTE)
        assert a_minute_of <= a_minute + max(1, a_minute // 6) + 1


def test_everything_that_is_held_is_let_go_in_the_end() -> None:
    allowed, came = Allowance(1), 0
    for minute in range(100):
        allowed = allowed.at_time(minute * MINUTE)
        came += allowed.whole
        allowed = allowed.less(allowed.whole)
    assert came == 100


# --- a pause that is over ------------------------------------------------------------------------


def test_what_a_pause_held_comes_back_when_it_is_resumed() -> None:
    ports = MemoryPorts(MemoryJournal(lambda: NOW))
    pause = Pause(ALL, NOW, "alice", "a look")
    ports.pauses.begin(pause)
    ports.journal.put(finding(1, waits=pause.waiting))
    ports.journal.put(finding(2, waits=Waiting(Wait.CLOCKS, "the clock of n differs")))
    decisions = batches(ports)
    decisions.start()
    decisions.later_looks(NOW)
    ports.pauses.end(pause, Resumed(NOW, "bob", "it was nothing"))
    ports.asked += 2
    assert [wake.key[1] for wake in decisions.later_looks(NOW)] == [1]
    assert decisions.later_looks(NOW + HOUR) == []
