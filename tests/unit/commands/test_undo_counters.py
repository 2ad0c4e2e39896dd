"""Undoing the correction of a counter: the opposite delta, once, and the counter is left alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from checkpoints.pauses import Resumed
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Sum, Tally
from reconcilers.declared.writes import AddToCounter
from reconcilers.limits.hold import Hold
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.undo import NO_REPAIR, last_repair
from reconcilers.words.errors import Refused, Unreachable
from streaming.counters.undo import AGAIN, GONE, NOT_KNOWN, CounterUndo
from streaming.steps.undo import Undoing
from tests.builders.counters import OF_MAILBOX, Bench, K, undo_of
from tests.builders.rows import MAILBOX, NOW

SLOT = OF_MAILBOX.slot
HOLD = Hold(MAILBOX_TALLY.name, MAILBOX_COUNTERS.name, SLOT, NOW, "ana", "it was right")


def history(bench: Bench) -> list[Finding]:
    return list(bench.journal.history(MAILBOX_TALLY, MAILBOX_COUNTERS.name, SLOT))


@dataclass
class Corrected:
    """A counter that had one too many, and was corrected."""

    bench: Bench = field(default_factory=Bench)
    why: list[str | None] = field(default_factory=lambda: [None])

    def __post_init__(self) -> None:
        self.bench.with_wrong_counter().look(K)
        assert self.bench.counter() == (2, 1)

    def verify(self) -> Corrected:
        self.bench.look(K)
        assert self.bench.states()[-1] is State.VERIFIED
        return self

    @property
    def repair(self) -> Finding:
        found = last_repair(history(self.bench))
        assert isinstance(found, Finding)
        return found

    @property
    def undoing(self) -> CounterUndo:
        return undo_of(self.bench, MAILBOX_TALLY, self._stopped)

    def _stopped(self, _tally: Tally) -> str | None:
        return self.why.pop(0) if len(self.why) > 1 else self.why[0]

    def undo(self) -> tuple[Undoing, str]:
        became = self.undoing.carry_out(self.repair, HOLD)
        return became.what, became.sentence

    @property
    def is_on_hold(self) -> bool:
        return self.bench.findings.on_hold(HOLD.family, HOLD.projection, SLOT) is not None

    def states(self) -> list[State]:
        return [each.state for each in history(self.bench)]


@pytest.fixture
def corrected() -> Corrected:
    return Corrected().verify()


def test_the_opposite_is_added_and_the_counter_is_on_hold(corrected: Corrected) -> None:
    what, sentence = corrected.undo()
    assert what is Undoing.DONE
    assert sentence.startswith("undo by ana: it was right; its opposite was added")
    assert corrected.bench.counter() == (3, 1)
    assert corrected.bench.tables.added[-1].deltas == {Sum.COUNT: 1}
    assert corrected.bench.tables.added[-1].round == 2
    assert corrected.is_on_hold
    assert corrected.states()[:2] == [State.UNDONE, State.UNDOING]


def test_one_that_is_not_seen_to_hold_yet_is_undone_too() -> None:
    assert Corrected().undo()[0] is Undoing.DONE


def test_what_users_add_meanwhile_stays(corrected: Corrected) -> None:
    corrected.bench.set_counter(count=12, unseen=11)
    assert corrected.undo()[0] is Undoing.DONE
    assert corrected.bench.counter() == (13, 11)


def test_on_hold_it_is_not_corrected_again_until_it_is_released(corrected: Corrected) -> None:
    corrected.undo()
    bench = corrected.bench
    bench.expect(OF_MAILBOX)
    bench.look(2 * K)
    found = bench.open_finding()
    assert found.state is State.HELD
    assert "may be wrong; held: on hold by ana: it was right" in found.told
    assert bench.counter() == (3, 1)
    bench.journal.holds.end(HOLD, Resumed(bench.now, "bob", "fine"))
    bench.expect(OF_MAILBOX)
    bench.now = max(bench.now, found.next_look or 0)
    bench.recall()
    bench.look(2 * K)
    assert bench.counter() == (2, 1)


def test_of_two_who_undo_a_correction_at_once_the_later_leaves_the_hold_of_the_first(
    corrected: Corrected,
) -> None:
    holds, repair = corrected.bench.journal.holds, corrected.repair
    place = holds.place

    def after_the_other(hold: Hold) -> None:
        holds.place = place  # type: ignore[method-assign]
        bob = replace(HOLD, who="bob", asked_at=NOW - 1)
        assert corrected.undoing.carry_out(repair, bob).what is Undoing.DONE
        place(hold)

    holds.place = after_the_other  # type: ignore[method-assign]
    became = corrected.undoing.carry_out(repair, HOLD)
    assert became.what is Undoing.REFUSED
    assert corrected.is_on_hold
    assert corrected.bench.counter() == (3, 1)


def test_a_hold_that_comes_after_the_claim_stops_the_delta() -> None:
    bench = Bench().with_wrong_counter()
    claim = bench.rounds.claim

    def claim_and_hold(tally: str, key: str, after: int) -> bool:
        bench.journal.holds.place(HOLD)
        return claim(tally, key, after)

    bench.rounds.claim = claim_and_hold  # type: ignore[method-assign]
    bench.look(K)
    assert bench.tables.added == []
    assert "held: on hold by ana" in bench.open_finding().told


def test_it_is_not_undone_twice(corrected: Corrected) -> None:
    corrected.undo()
    assert str(last_repair(history(corrected.bench))).startswith("it was undone already")
    assert corrected.undoing.plan(corrected_line(corrected)) == AGAIN


def test_after_another_correction_it_is_refused(corrected: Corrected) -> None:
    corrected.bench.rounds.claim(MAILBOX_COUNTERS.name, str(MAILBOX), 1)
    assert corrected.undo() == (Undoing.REFUSED, AGAIN)
    assert not corrected.is_on_hold


def test_one_that_is_claimed_meanwhile_stops_it_and_the_hold_ends(corrected: Corrected) -> None:
    rounds = corrected.bench.rounds
    rounds.claim = lambda *_: False  # type: ignore[method-assign]
    assert corrected.undo() == (Undoing.REFUSED, AGAIN)
    assert not corrected.is_on_hold
    assert corrected.bench.counter() == (2, 1)


def test_a_hold_of_somebody_else_outlives_an_undo_that_is_refused(corrected: Corrected) -> None:
    corrected.bench.journal.holds.place(replace(HOLD, who="bob", asked_at=NOW - 1))
    corrected.bench.rounds.claim = lambda *_: False  # type: ignore[method-assign]
    assert corrected.undo() == (Undoing.REFUSED, AGAIN)
    assert corrected.is_on_hold


def test_of_a_delta_without_an_answer_nobody_knows() -> None:
    bench = Bench().with_wrong_counter()
    bench.tables.fails["add"] = Unreachable("no answer")
    bench.look(K)
    repair = last_repair(history(bench))
    assert isinstance(repair, Finding)
    assert undo_of(bench, MAILBOX_TALLY).plan(repair) == NOT_KNOWN


def test_while_nobody_may_correct_it_is_refused(corrected: Corrected) -> None:
    corrected.why = ["a node is down"]
    assert corrected.undo() == (Undoing.REFUSED, "a node is down")
    corrected.why = [None, None, "repairs are paused"]
    assert corrected.undo() == (Undoing.REFUSED, "repairs are paused")
    assert corrected.bench.counter() == (2, 1)
    assert not corrected.is_on_hold


def test_one_that_was_held_after_its_claim_can_be_undone_later(corrected: Corrected) -> None:
    corrected.why = [None, None, "repairs are paused"]
    assert corrected.undo() == (Undoing.REFUSED, "repairs are paused")
    corrected.bench.tables.fails["add"] = Refused("no right")
    corrected.why = [None]
    assert corrected.undo() == (Undoing.REFUSED, "its table refuses: no right")
    assert corrected.undo()[0] is Undoing.DONE
    assert corrected.bench.counter() == (3, 1)
    assert [each.round for each in corrected.bench.tables.added] == [1, 4]
    assert corrected.undoing.plan(corrected_line(corrected)) == AGAIN


def corrected_line(corrected: Corrected) -> Finding:
    return next(each for each in history(corrected.bench) if each.state is State.VERIFIED)


def test_one_that_may_have_been_added_is_not_sent_again(corrected: Corrected) -> None:
    corrected.bench.tables.fails["add"] = Unreachable("no answer")
    with pytest.raises(Unreachable):
        corrected.undo()
    assert corrected.undo() == (Undoing.REFUSED, AGAIN)


def test_after_two_corrections_the_counter_is_as_wrong_as_before_the_first() -> None:
    """Somebody has set it back in between, so only the second still stands."""
    corrected = Corrected()
    bench = corrected.bench
    bench.with_wrong_counter()
    bench.look(2 * K)
    assert [each.deltas for each in bench.tables.added] == [{Sum.COUNT: -1}] * 2
    assert corrected.repair.attempts == 2
    assert bench.counter() == (2, 1)
    assert corrected.undo()[0] is Undoing.DONE
    assert bench.counter() == (3, 1)


def test_a_table_that_refuses_is_told(corrected: Corrected) -> None:
    corrected.bench.tables.fails["add"] = Refused("no right")
    assert corrected.undo() == (Undoing.REFUSED, "its table refuses: no right")


def test_no_counter_goes_below_zero_or_what_it_was_before(corrected: Corrected) -> None:
    repair = corrected.repair
    assert repair.before is not None
    [write] = repair.writes
    assert isinstance(write, AddToCounter)
    raised = replace(repair, writes=(replace(write, deltas={Sum.COUNT: 5}),))
    undoing, standing = corrected.undoing, {"count": -3, "unseen": 1}
    intended = replace(raised, state=State.INTENDED, attempts=0)
    corrected.bench.journal.close(intended, State.INTENDED, corrected.bench.now)
    corrected.bench.set_counter(count=2, unseen=1)
    assert undoing.plan(raised) == "count would be below zero: much has changed since"
    was_negative = replace(raised, before=replace(repair.before, cells=standing))
    assert not isinstance(undoing.plan(was_negative), str)


def test_a_counter_that_is_gone_or_was_never_corrected_is_refused(corrected: Corrected) -> None:
    corrected.bench.tables.rows.clear()
    assert corrected.undoing.plan(corrected.repair) == GONE
    assert corrected.undoing.plan(replace(corrected.repair, writes=())) == NO_REPAIR


def test_a_tally_that_is_switched_off_is_refused(corrected: Corrected) -> None:
    off = replace(corrected.undoing, family=replace(MAILBOX_TALLY, tallies=()))
    assert off.plan(corrected.repair) == "mailbox_counters is not among tally.projections"
