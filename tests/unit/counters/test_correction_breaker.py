"""The breaker of corrections: what it counts, what it holds back, and how that ends."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.declared.tally import Sum
from reconcilers.limits.breakers import OF_ROWS, Breaker, BreakerLimits
from reconcilers.limits.ceiling import MINUTE
from reconcilers.rows.finding import State
from reconcilers.words.errors import Deferred
from reconcilers.words.model import Kind, Micros
from streaming.counters.correct import Conclusion
from streaming.counters.correction_breaker import CorrectionBreaker
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.breakers import BreakerWatch
from tests.builders.counter_breakers import correction_breaker
from tests.builders.counters import AGAIN, OF_BOB, OF_MAILBOX, Bench, K
from tests.builders.rows import MAILBOX, NOW, SECOND
from tests.fakes.checkpoints.memory import MemoryJournal

LIMITS = BreakerLimits(5, 0.1, share_min_keys=100, opens=Breaker.CORRECTIONS, keys="counters")


@dataclass
class Desk:
    """A breaker on a clock set by hand."""

    limits: BreakerLimits = LIMITS
    a_minute: int = 3
    now: Micros = NOW
    journal: MemoryJournal = field(init=False)
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    breaker: CorrectionBreaker = field(init=False)

    def __post_init__(self) -> None:
        self.journal = MemoryJournal(self.clock)
        self.begin()

    def begin(self) -> None:
        """A new process."""
        self.breaker = correction_breaker(
            self.journal, self.clock, self.limits, self.a_minute, self.metrics
        )

    def clock(self) -> Micros:
        return self.now

    def shown(self) -> float | None:
        labels = {"breaker": "corrections"}
        return self.metrics.registry.get_sample_value("reconciler_breaker_open", labels)

    def corrections(self, number: int) -> int:
        """So many new ones in a moment; how many went through."""
        through = 0
        for each in range(number):
            try:
                self.breaker.admit_new(f"{self.now} {each}")
            except Deferred:
                continue
            through += 1
        return through


def test_many_corrections_in_a_minute_open_it_and_no_more_are_sent() -> None:
    desk = Desk()
    assert desk.shown() == 0
    assert desk.corrections(20) == 5
    assert desk.journal.breakers() == {Breaker.CORRECTIONS: "6 in a minute, the limit is 5"}
    assert str(desk.breaker.why()) == "breaker corrections: 6 in a minute, the limit is 5"
    assert desk.shown() == 1


def test_corrections_one_by_one_do_not_open_it() -> None:
    desk = Desk()
    for _ in range(20):
        desk.breaker.looked("agrees", 100)
        assert desk.corrections(5) == 5
        desk.now += MINUTE
    assert desk.breaker.why() is None


def test_a_large_share_of_the_counters_that_are_looked_at_opens_it_however_slowly() -> None:
    desk = Desk()
    through = 0
    for _ in range(100):
        for outcome in ["agrees"] * 8 + ["moved", "no canary"]:
            desk.breaker.looked(outcome, 1)
        through += desk.corrections(1)
        desk.now += MINUTE
    assert through == 12
    assert "13 of 104 counters in 13 minutes" in desk.journal.breakers()[Breaker.CORRECTIONS]


def test_one_that_is_opened_stays_so_for_the_next_process() -> None:
    desk = Desk()
    desk.corrections(6)
    desk.begin()
    assert desk.shown() == 1
    with pytest.raises(Deferred, match="breaker corrections"):
        desk.breaker.admit_again("one")


def test_when_a_person_resumes_it_is_seen_within_half_a_minute_and_counts_anew() -> None:
    desk = Desk()
    desk.corrections(6)
    assert desk.breaker.why()
    desk.journal.close_breakers(desk.now)
    desk.now += 31 * SECOND
    assert desk.breaker.why() is None
    assert desk.shown() == 0
    assert desk.corrections(5) == 5


def test_what_comes_back_is_let_through_at_a_pace_and_counts_for_no_share() -> None:
    desk = Desk(limits=BreakerLimits(5, 0.01, share_min_keys=1, opens=Breaker.CORRECTIONS))
    held: list[str] = []
    for number in range(40):
        try:
            desk.breaker.admit_again(str(number))
        except Deferred as why:
            held.append(str(why))
        desk.now += MINUTE // 10
    assert held == ["of corrections that come back, 3 a minute are sent"] * 28
    assert desk.breaker.why() is None


def test_the_breakers_of_rows_and_of_counters_do_not_know_each_other() -> None:
    desk = Desk()
    rows = BreakerWatch(desk.journal, BreakerLimits(), desk.metrics)
    desk.corrections(6)
    rows.recall()
    assert not rows.any_open
    assert desk.shown() == 1
    for each in OF_ROWS:
        desk.journal.open_breaker(each, "as it was", desk.now)
    desk.journal.close_breakers(desk.now)
    for each in OF_ROWS:
        desk.journal.open_breaker(each, "again", desk.now + 1)
    desk.now += MINUTE
    assert desk.breaker.why() is None


# --- in a correction ------------------------------------------------------------------------------


def strict(most: int = 0) -> Bench:
    return Bench(breaks=BreakerLimits(most, 1.0, opens=Breaker.CORRECTIONS))


def test_a_correction_that_opens_it_is_not_sent_and_is_held_with_the_reason() -> None:
    bench = strict()
    bench.with_wrong_counter()
    bench.look(K)
    found = bench.open_finding()
    assert (found.kind, found.state) == (Kind.COUNTER_DRIFT, State.HELD)
    assert found.told.endswith("breaker corrections: 1 in a minute, the limit is 0")
    assert bench.tables.added == []
    assert bench.rounds.current(OF_MAILBOX.tally.name, str(MAILBOX)) == 0


def test_while_it_is_open_no_other_counter_is_corrected() -> None:
    bench = strict()
    bench.set_counter(count=3, unseen=1)
    bench.set_quota(count=3, size=200)
    bench.expect(OF_MAILBOX, OF_BOB)
    bench.look(K)
    bench.look(K)
    assert "breaker corrections" in bench.open_finding(OF_BOB).told
    assert bench.tables.added == []


def test_after_resume_it_is_corrected() -> None:
    bench = strict(most=1)
    bench.correcting.breaker.admit_new("another")
    bench.with_wrong_counter()
    bench.now -= 6 * MINUTE
    looked = Conclusion(frozenset({MAILBOX}), 0, {Sum.COUNT: 1})
    bench.correcting.breaker.admit_new("one more")
    with pytest.raises(Deferred, match="breaker"):
        bench.correcting.correct(OF_MAILBOX, looked, None)
    bench.journal.close_breakers(bench.now)
    bench.now += AGAIN
    bench.expect(OF_MAILBOX)
    bench.look(K + 1)
    assert bench.counter() == (2, 1)


def test_what_an_observer_finds_counts_for_nothing() -> None:
    bench = Bench(
        observe=True, breaks=BreakerLimits(0, 1.0, opens=Breaker.CORRECTIONS)
    ).with_wrong_counter()
    bench.look(2 * K)
    assert bench.journal.breakers() == {}
