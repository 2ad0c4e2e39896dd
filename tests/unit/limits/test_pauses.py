"""A person's pause: what it covers, how old an answer may be, and that no write follows it."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.pauses import Resumed
from reconcilers.declared.family import Projection
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA
from reconcilers.limits.breakers import Breaker
from reconcilers.limits.gate import Admission
from reconcilers.limits.pause import Pause, why_paused
from reconcilers.limits.write_target import (
    ALL,
    EVERYTHING,
    REMOVALS,
    WriteTarget,
    correction_of,
    repair_of,
)
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Kind
from reconcilers.words.waiting import Wait, Waiting
from streaming.app import parsed
from streaming.commands.person.pause import listed, pausable
from streaming.commands.person.resume import ResumeDesk
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.pause_report import PauseReport
from streaming.steps.outcome import Outcome
from streaming.steps.pauses import OLDEST, UNKNOWN, PauseWatch, nobodys
from streaming.steps.permit import Permit
from tests.builders.counters import OF_BOB, OF_MAILBOX, Bench, K
from tests.builders.failing import unreachable
from tests.builders.found import suspect_at
from tests.builders.indexes import DELETED, LISTS, UNSEEN
from tests.builders.rows import LONG_AGO, NOW, SECOND
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.pauses import MemoryPauses
from tests.fakes.refusing import SLOTS, Stream, message_at

PAUSE = Pause(ALL, NOW, "alice", "a look")
WHY = "paused by alice: a look"
PAUSED = Waiting(Wait.PAUSE, WHY)
BY = Resumed(NOW, "bob", "it was nothing")


# --- what it covers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "projection", "kind", "covered"),
    [
        (ALL, LISTS, Kind.MISSING_ROW, True),
        (ALL, DELETED, Kind.EXTRA_ROW, True),
        (REMOVALS, LISTS, Kind.EXTRA_ROW, True),
        (REMOVALS, LISTS, Kind.DIFFERING_CELLS, False),
        (REMOVALS, DELETED, Kind.EXTRA_ROW, False),
        (LISTS.name, LISTS, Kind.MISSING_ROW, True),
        (LISTS.name, DELETED, Kind.MISSING_ROW, False),
    ],
)
def test_what_a_pause_covers(
    what: str, projection: Projection, kind: Kind, *, covered: bool
) -> None:
    why = why_paused([replace(PAUSE, what=what)], repair_of(projection, kind), NOW, nobodys)
    assert why == (Waiting(Wait.PAUSE, WHY) if covered else None)


@pytest.mark.parametrize(
    ("what", "covered"), [(ALL, True), (CURRENT_QUOTA.name, True), (REMOVALS, False)]
)
def test_what_of_counters_a_pause_covers(what: str, *, covered: bool) -> None:
    why = why_paused([replace(PAUSE, what=what)], correction_of(CURRENT_QUOTA), NOW, nobodys)
    assert bool(why) is covered


def test_a_pause_until_a_time_ends_by_itself_and_says_which() -> None:
    until = replace(PAUSE, until=NOW + SECOND)
    told = "paused by alice until 2027-01-15T08:00:01+00:00: a look"
    assert str(why_paused([until], EVERYTHING, NOW, nobodys)) == told
    assert why_paused([until], EVERYTHING, NOW + SECOND, nobodys) is None


def test_the_one_that_was_asked_for_first_is_named() -> None:
    later = replace(PAUSE, asked_at=NOW + 1, who="bob")
    assert str(why_paused([later, PAUSE], EVERYTHING, NOW, nobodys)) == WHY


# --- how old an answer may be --------------------------------------------------------------------


@dataclass
class SlowPauses(MemoryPauses):
    """Each answer takes so long (s); it is what was true when it was asked for."""

    takes: float = 0.0
    seconds: float = 0.0
    asked: int = 0

    def __post_init__(self) -> None:
        super().__init__()

    def standing(self) -> tuple[Pause, ...]:
        self.asked += 1
        found = super().standing()
        self.seconds += self.takes
        return found

    def steady(self) -> float:
        return self.seconds

    @property
    def watch(self) -> PauseWatch:
        return PauseWatch(self, lambda: NOW, self.steady)


def test_an_answer_is_used_for_a_second_and_no_longer() -> None:
    pauses = SlowPauses()
    watch = pauses.watch
    assert watch.why(EVERYTHING) is None
    pauses.begin(PAUSE)
    pauses.seconds = OLDEST
    assert (watch.why(EVERYTHING), pauses.asked) == (None, 1)
    pauses.seconds = OLDEST + 0.01
    assert (watch.why(EVERYTHING), pauses.asked) == (PAUSED, 2)


def test_its_age_counts_from_the_question() -> None:
    """A pause that is begun while the answer is on its way is not in it."""
    pauses = SlowPauses(takes=0.6)
    watch = pauses.watch
    assert watch.why(EVERYTHING) is None
    pauses.begin(PAUSE)
    pauses.seconds += 0.5
    assert watch.why(EVERYTHING) == PAUSED


def test_where_no_answer_is_young_enough_nothing_is_written() -> None:
    pauses = SlowPauses(takes=1.5)
    assert pauses.watch.why(EVERYTHING) == UNKNOWN
    assert pauses.asked == 2


def test_where_nobody_answers_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = SlowPauses()
    monkeypatch.setattr(pauses, "standing", unreachable)
    with pytest.raises(Unreachable):
        pauses.watch.why(EVERYTHING)


# --- no write follows ----------------------------------------------------------------------------


@dataclass
class PausedAt:
    """Pauses after so many questions; a permit asks it."""

    after: int
    asked: int = 0
    targets: list[WriteTarget] = field(default_factory=list)

    def __call__(self, target: WriteTarget) -> Waiting | None:
        self.asked += 1
        self.targets.append(target)
        return PAUSED if self.asked > self.after else None

    def permit(self, admission: Admission) -> Permit:
        return Permit(admission, lambda: None, self)


@dataclass
class Slice(Stream):
    """Suspects of one slice, under a permit that a person withdraws."""

    pauses: PausedAt = field(default_factory=lambda: PausedAt(0))

    def execute_paused(self) -> list[Outcome]:
        of_index: dict[str, Any] = {"projection": DELETED.name, "oldest": LONG_AGO}
        suspects = [suspect_at(slot, sources=[message_at(slot)], **of_index) for slot in SLOTS]
        permit = self.pauses.permit(Admission())
        return self._examiner(DELETED).examine(suspects, permit, f"batch {self.batches}")


@pytest.mark.parametrize("after", range(2 * len(SLOTS) + 1))
def test_in_the_middle_of_a_slice_nothing_more_is_written(after: int) -> None:
    """Asked before the intent is journalled, and once more before it is sent."""
    stream = Slice(pauses=PausedAt(after))
    outcomes = stream.execute_paused()
    written = after // 2
    assert len(stream.tables.asked) == written
    acted = [each.action for each in outcomes]
    assert acted == [Action.REPAIR] * written + [Action.KEEP] * (len(SLOTS) - written)
    held = [each for each in stream.open_ones() if each.state is State.HELD]
    assert len(held) == len(SLOTS) - written
    assert all(each.waits == PAUSED for each in held)
    assert all(not each.writes and not each.attempts for each in held)


def test_an_intent_that_was_not_sent_is_held_and_carried_out_when_it_is_resumed() -> None:
    stream = Slice(pauses=PausedAt(1))
    stream.execute_paused()
    assert stream.logged(SLOTS[0]) == ["intended", "held"]
    stream.pauses = PausedAt(100)
    stream.settle()
    assert stream.repaired() == set(SLOTS)
    assert {each.attempts for each in stream.open_ones()} == {1}


def test_an_attempt_that_was_paused_loses_and_counts_none() -> None:
    stream = Slice()
    stream.settle()
    del stream.tables.rows[DELETED.name]  # it did not hold
    stream.now += 60 * SECOND
    stream.batches += 1
    stream.pauses = PausedAt(1)
    stream.execute_paused()
    held = {each.slot: each for each in stream.open_ones()}[SLOTS[0]]
    assert (held.state, held.attempts, bool(held.writes)) == (State.HELD, 1, True)
    stream.settle()
    assert {each.attempts for each in stream.open_ones()} == {2}


def test_an_observer_asks_nobody() -> None:
    pauses = PausedAt(0)
    permit = pauses.permit(Admission(observe=True))
    assert permit.paused(LISTS, Kind.EXTRA_ROW, SLOTS[0]) is None
    assert pauses.asked == 0


def test_the_permit_asks_for_what_it_is_about() -> None:
    pauses = PausedAt(0)
    admitted = pauses.permit(Admission()).admits(UNSEEN, Kind.MISSING_ROW, SLOTS[0])
    assert admitted.repairs_wait == PAUSED
    (asked,) = pauses.targets
    assert asked.names == {ALL, UNSEEN.name}
    assert (asked.system, asked.kind) == (UNSEEN.name, Kind.MISSING_ROW)
    assert asked.group == SLOTS[0].group


# --- counters ------------------------------------------------------------------------------------


def wrong(*answers: Waiting | None) -> Bench:
    bench = Bench(paused=list(answers)).with_wrong_counter()
    bench.look(K)
    return bench


def held(bench: Bench) -> Finding:
    found = bench.open_finding()
    assert found.state is State.HELD
    assert bench.tables.added == []
    return found


def test_while_they_are_paused_counters_wait() -> None:
    bench = wrong(PAUSED)
    assert held(bench).waits == PAUSED


def test_a_correction_that_was_claimed_and_journalled_is_not_sent_after_a_pause() -> None:
    bench = wrong(None, PAUSED)
    assert held(bench).waits == PAUSED
    bench.paused = [None]
    bench.now += 2 * 600 * SECOND
    bench.recall()
    bench.expect(OF_MAILBOX)
    bench.look(K)
    assert bench.counter() == (2, 1), "after fresh looks"


def test_a_quota_is_paused_by_its_own_name() -> None:
    assert correction_of(OF_BOB.tally).names == {ALL, CURRENT_QUOTA.name}


# --- what is told --------------------------------------------------------------------------------


def test_the_driver_tells_of_a_pause_and_how_it_ended(caplog: pytest.LogCaptureFixture) -> None:
    pauses, metrics = SlowPauses(), Metrics(CollectorRegistry())
    report = PauseReport(pauses.watch, metrics)

    def shown() -> float | None:
        return metrics.registry.get_sample_value("reconciler_repairs_paused", {"reason": "pause"})

    with caplog.at_level(logging.INFO):
        assert not report.is_over()
        assert shown() == 0
        pauses.begin(PAUSE)
        pauses.seconds += 2
        assert not report.is_over()
        assert not report.is_over()
        assert shown() == 1
        pauses.end(PAUSE, BY)
        pauses.seconds += 2
        assert report.is_over()
        assert not report.is_over()
    assert shown() == 0
    assert [each.getMessage() for each in caplog.records] == [
        "repairs of all are paused by alice: a look",
        "repairs of all go on: resumed by bob: it was nothing",
    ]


def test_a_pause_whose_time_has_come_is_over(caplog: pytest.LogCaptureFixture) -> None:
    pauses, now = MemoryPauses(), [NOW]
    pauses.begin(replace(PAUSE, until=NOW + 1))
    report = PauseReport(
        PauseWatch(pauses, lambda: now[0], lambda: 0.0), Metrics(CollectorRegistry())
    )
    assert not report.is_over()
    now[0] += 1
    assert report.is_over()
    assert caplog.records[-1].getMessage() == "repairs of all go on: its time has come"


# --- the commands --------------------------------------------------------------------------------


def arguments(*words: str) -> argparse.Namespace:
    return parsed(words)


def test_what_can_be_paused() -> None:
    assert pausable()[:3] == (ALL, REMOVALS, LISTS.name)
    assert "current_quota" in pausable()
    assert arguments("pause").what == ALL
    assert arguments("pause", "removals", "--for", "2h").lasts == 7200 * SECOND
    assert arguments("pause", "--until", "2027-01-15T08:00:00").until == NOW
    assert arguments("resume").pause == []


@pytest.mark.parametrize(
    "words", [("pause", "nothing"), ("pause", "--for", "2 h"), ("pause", "--until", "noon")]
)
def test_what_cannot_is_refused(words: Sequence[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(*words)


def resumed(pauses: Iterable[Pause], *what: str) -> tuple[list[str], MemoryPauses]:
    kept, journal = MemoryPauses(), MemoryJournal()
    for each in pauses:
        kept.begin(each)
    journal.open_breaker(Breaker.REPAIRS, "2000 in a minute", NOW)
    desk = ResumeDesk(kept, journal, BY)
    ends = desk.asked(what, [])
    desk.end(ends)
    return ends.told(BY), kept


def test_resume_ends_every_pause_and_closes_the_breakers() -> None:
    past = replace(PAUSE, asked_at=NOW - 9, until=NOW - 1)
    told, kept = resumed([past, PAUSE, replace(PAUSE, what=REMOVALS)])
    assert told == [
        "pause of all, paused by alice: a look",
        "pause of removals, paused by alice: a look",
        "breaker repairs, open: 2000 in a minute",
    ]
    assert kept.standing() == ()


def test_one_pause_can_be_ended_by_itself() -> None:
    removing = replace(PAUSE, what=REMOVALS)
    _told, kept = resumed([PAUSE, removing], REMOVALS)
    assert kept.standing() == (PAUSE,)


def test_a_history_of_nothing_says_so() -> None:
    assert list(listed(MemoryPauses(), lambda: NOW)) == ["nothing was ever paused"]


def test_the_history_is_listed_with_who_and_why() -> None:
    kept = MemoryPauses()
    ended, past = replace(PAUSE, asked_at=NOW - 2), replace(PAUSE, asked_at=NOW - 1, until=NOW)
    for each in (ended, past, PAUSE):
        kept.begin(each)
    kept.end(ended, BY)
    first, second, third = listed(kept, lambda: NOW)
    assert first.endswith("; ended 2027-01-15T08:00:00+00:00 by bob: it was nothing")
    assert second.endswith("; its time has come")
    assert third == "2027-01-15T08:00:00+00:00  all  paused by alice: a look; STANDS"
