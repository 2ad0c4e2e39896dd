"""Steps 5 to 7 on fakes: what becomes of a suspect, attempt after attempt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from reconcilers.counters.open_message import open_message
from reconcilers.declared.writes import SetCells, Write
from reconcilers.limits.gate import Admission
from reconcilers.rows.decision import accepted
from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.finding import Action, Attempts, Finding, State
from reconcilers.rows.memory import Entry
from reconcilers.words.errors import Refused
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Suspect, Wake
from reconcilers.words.waiting import Wait, Waiting
from streaming.steps.confirm import Confirmer
from streaming.steps.examine import Examiner, Rules
from streaming.steps.outcome import Outcome
from streaming.steps.parking import REFUSES
from tests.builders.permits import permit
from tests.builders.rows import (
    DELAY,
    FAMILY,
    LONG_AGO,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    PROJECTION,
    SECOND,
    SLOT,
    row,
    truth,
)
from tests.builders.slots import uid_of
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.memory_tables import MemoryTables

SHADOW = 10 * SECOND
RULES = Rules(
    DELAY,
    heard_within=0,
    recheck_interval=3600 * SECOND,
    attempts=Attempts(3, apart=DELAY),
    empty_truth_min_rows=10,
)
OPEN = Admission()


@dataclass
class Stream:
    """An examiner with everything around it in memory; each batch is a delay after the last.

    ``ended`` are the findings that were superseded in the last batch.
    """

    tables: MemoryTables = field(default_factory=MemoryTables)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    published: list[Wake] = field(default_factory=list)
    ended: list[State | None] = field(default_factory=list)
    now: Micros = NOW
    _batches: int = 0

    def __post_init__(self) -> None:
        self.journal = MemoryJournal(lambda: self.now)

    def settle(
        self,
        kind: Kind,
        admission: Admission = OPEN,
        sources: frozenset[KeyValue] = frozenset({MESSAGE_ID}),
    ) -> Outcome:
        """One batch with `SLOT` as its only suspect."""
        self._batches += 1
        self.now += DELAY + SECOND
        suspect = Suspect(SLOT, sources, kind, PROJECTION.name, LONG_AGO, suspected=kind)
        *ended, outcome = self._examiner().examine(
            [suspect], permit(admission), f"batch {self._batches}"
        )
        self.ended = [each.ended for each in ended]
        return outcome

    def _examiner(self) -> Examiner:
        confirmation = Confirmer(FAMILY, PROJECTION, self.tables, self.lineage, DELAY)
        return Examiner(
            FAMILY,
            PROJECTION,
            self.tables,
            confirmation,
            self.journal,
            self._publish,
            lambda: self.now,
            RULES,
        )

    def _publish(self, wakes: Iterable[Wake]) -> None:
        self.published += wakes

    @property
    def finding(self) -> Finding | None:
        """The one that is open."""
        return self.journal.recall(FAMILY, PROJECTION.name, [SLOT]).get(SLOT)

    def logged(self) -> list[object]:
        """The states that the journal's log tells, oldest first."""
        day = datetime.fromtimestamp(NOW / SECOND, UTC).date()
        return [line["state"] for line in self.journal.log(day)]


def stream(*, actual: Row | None = None, wanted: Row | None = None) -> Stream:
    tables = MemoryTables(
        truths={} if wanted is None else {MESSAGE_ID: (wanted,)},
        rows={} if actual is None else {PROJECTION.name: {SLOT: actual}},
    )
    return Stream(tables)


def kind_of(outcome: Outcome) -> Kind | None:
    return outcome.finding.kind if outcome.finding is not None else None


# --- what nobody can resolve ----------------------------------------------------------------------


def test_a_row_that_was_deleted_and_whose_message_nobody_knows_is_reported() -> None:
    one = stream()
    outcome = one.settle(Kind.UNRESOLVED, sources=frozenset())
    assert (outcome.action, kind_of(outcome)) == (Action.REPORT, Kind.UNRESOLVED)
    assert one.finding is not None
    assert "`reconcile sweep`" in one.finding.sentence


def test_of_an_orphan_that_two_messages_may_claim_the_counters_hear_of_both() -> None:
    """It names one, and another is remembered there: once that ended each batch with an error."""
    one = stream(actual=row(messageid=OTHER_ID))
    one.lineage.remember([Entry(MESSAGE_ID, SLOT, True, LONG_AGO)])
    outcome = one.settle(Kind.EXTRA_ROW, sources=frozenset())
    assert kind_of(outcome) is Kind.ABSENT_WITHOUT_DELETE
    assert one.finding is not None
    message = open_message(one.finding)
    assert message is not None
    assert message.sources == {MESSAGE_ID, OTHER_ID}


# --- what a person accepted stays accepted -------------------------------------------------------


def shadowed() -> Stream:
    """A truth row that outlived a delete by a second, of which the projection is rid."""
    one = stream(wanted=truth())
    one.lineage.remember_deletes([TruthDelete(MESSAGE_ID, (MAILBOX, None), LONG_AGO - SECOND)])
    return one


def test_a_row_that_outlived_its_delete_is_reported_and_not_written() -> None:
    one = shadowed()
    outcome = one.settle(Kind.MISSING_ROW)
    assert (outcome.action, kind_of(outcome)) == (Action.REPORT, Kind.SHADOWED_DELETE)
    assert one.tables.applied == []


def test_an_accepted_repair_that_does_not_hold_is_tried_again_and_not_reported() -> None:
    one = shadowed()
    reported = one.settle(Kind.MISSING_ROW).finding
    assert reported is not None
    one.journal.put(accepted(reported, one.now))
    for attempt in (1, 2, 3):
        outcome = one.settle(Kind.MISSING_ROW)
        assert (outcome.action, kind_of(outcome)) == (Action.REPAIR, Kind.MISSING_ROW)
        assert one.finding is not None
        assert (one.finding.attempts, one.finding.accepted) == (attempt, True)
    assert one.settle(Kind.MISSING_ROW).action is Action.STICK


def test_a_finding_that_nobody_accepted_is_not_carried_out_at_the_next_look() -> None:
    one = shadowed()
    one.settle(Kind.MISSING_ROW)
    assert one.settle(Kind.MISSING_ROW).action is Action.KEEP
    assert one.tables.applied == []


KNOWN = [Entry(MESSAGE_ID, SLOT, True, LONG_AGO)]


def test_who_let_a_row_be_added_has_not_let_it_be_removed() -> None:
    one = shadowed()
    reported = one.settle(Kind.MISSING_ROW).finding
    assert reported is not None
    one.journal.put(accepted(reported, one.now))
    assert one.settle(Kind.MISSING_ROW).action is Action.REPAIR
    one.lineage.remember(KNOWN)
    one.tables.truths.clear()
    one.tables.rows[PROJECTION.name] = {SLOT: row()}
    assert kind_of(one.settle(Kind.EXTRA_ROW)) is Kind.AMBIGUOUS_RANGE_DELETE
    assert SLOT in one.tables.rows[PROJECTION.name]
    assert one.finding is not None
    assert not one.finding.accepted


def test_who_let_a_row_be_removed_has_not_let_it_be_added() -> None:
    one = stream(actual=row())
    one.lineage.remember(KNOWN)
    one.lineage.remember_deletes([TruthDelete(MESSAGE_ID, (MAILBOX, None), LONG_AGO - SECOND)])
    reported = one.settle(Kind.EXTRA_ROW).finding
    assert reported is not None
    assert reported.kind is Kind.AMBIGUOUS_RANGE_DELETE
    one.journal.put(accepted(reported, one.now))
    held = one.settle(Kind.EXTRA_ROW, Admission(repairs_wait=Waiting(Wait.PAUSE, "paused"))).finding
    assert held is not None
    assert (held.kind, held.accepted) == (Kind.EXTRA_ROW, True)
    one.tables.rows.clear()
    one.tables.truths[MESSAGE_ID] = (truth(),)
    assert kind_of(one.settle(Kind.MISSING_ROW)) is Kind.SHADOWED_DELETE
    assert one.tables.applied == []


# --- superseded by a user ------------------------------------------------------------------------


def written_to_since() -> Stream:
    """A cell was repaired, then a user wrote it once more, and it differs again."""
    one = stream(actual=row(flagseen=False), wanted=truth())
    assert one.settle(Kind.DIFFERING_CELLS).action is Action.REPAIR
    newer = row(flagseen=False, written={"flagseen": LONG_AGO + 5 * SECOND})
    one.tables.rows[PROJECTION.name][SLOT] = newer
    return one


def test_what_a_user_wrote_since_supersedes_the_repair_and_is_repaired_anew() -> None:
    one = written_to_since()
    outcome = one.settle(Kind.DIFFERING_CELLS)
    assert (outcome.action, one.ended) == (Action.REPAIR, [State.SUPERSEDED])
    assert outcome.finding is not None
    assert one.finding == outcome.finding
    assert (outcome.finding.attempts, outcome.finding.batch) == (1, "batch 2")
    assert outcome.finding.found_at == one.now
    assert one.logged() == ["intended", "superseded", "intended"]
    expected = SetCells(PROJECTION, SLOT, LONG_AGO + 5 * SECOND + 1, {"flagseen": True})
    assert one.tables.applied[1:] == [expected]


def test_a_superseded_repair_ends_even_when_the_next_is_held() -> None:
    one = written_to_since()
    outcome = one.settle(
        Kind.DIFFERING_CELLS,
        Admission(repairs_wait=Waiting(Wait.BREAKER, "breaker repairs: too many")),
    )
    assert (outcome.action, one.ended) == (Action.KEEP, [State.SUPERSEDED])
    assert outcome.finding is not None
    assert outcome.finding.state is State.HELD
    assert one.finding == outcome.finding
    assert one.logged() == ["intended", "superseded", "held"]


# --- a table that refuses writes (more of it in test_parking.py) ---------------------------------


class RefusingTables(MemoryTables):
    """Nothing may be written."""

    def apply(self, writes: Sequence[Write]) -> None:
        raise Refused("no right to")


def test_a_refused_repair_leaves_no_finding_of_its_own_and_comes_back() -> None:
    one = stream(actual=row(flagseen=False), wanted=truth())
    one.tables = RefusingTables(one.tables.truths, one.tables.rows)
    outcome = one.settle(Kind.DIFFERING_CELLS)
    assert outcome == Outcome(
        SLOT, Action.LOOK_AGAIN, None, projection=PROJECTION.name, reason=REFUSES.why
    )
    assert one.finding is None
    assert [wake.suspected for wake in one.published] == [Kind.DIFFERING_CELLS]
    assert one.logged() == ["intended", "reported", "parked"]
    (parked,) = one.journal.open_findings(FAMILY)
    assert (parked.kind, parked.slot) == (Kind.TABLE_REFUSES, WHOLE_TABLE)


def test_a_superseded_repair_ends_as_such_even_when_the_next_is_refused() -> None:
    one = written_to_since()
    one.tables = RefusingTables(one.tables.truths, one.tables.rows)
    outcome = one.settle(Kind.DIFFERING_CELLS)
    assert (outcome.action, one.ended[0]) == (Action.LOOK_AGAIN, State.SUPERSEDED)
    assert one.logged()[:2] == ["intended", "superseded"]
    assert one.finding is None


# --- cells from the beginning of time ------------------------------------------------------------


@pytest.mark.parametrize("at", [0, -1])
def test_a_missing_row_whose_truth_has_no_usable_write_time_is_unguardable(at: Micros) -> None:
    one = stream(wanted=truth(at=at))
    outcome = one.settle(Kind.MISSING_ROW)
    assert (outcome.action, kind_of(outcome)) == (Action.REPORT, Kind.UNGUARDABLE)
    assert one.tables.applied == []


def test_what_stays_unguardable_is_logged_once() -> None:
    one = stream(wanted=truth(at=0))
    first, second = (one.settle(Kind.MISSING_ROW) for _ in range(2))
    assert (first.action, second.action) == (Action.REPORT, Action.KEEP)


def test_an_extra_row_from_the_beginning_of_time_is_unguardable() -> None:
    one = stream(actual=row(at=0))
    one.lineage.remember([Entry(MESSAGE_ID, Slot(MAILBOX, uid_of(SLOT)), True, LONG_AGO)])
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    outcome = one.settle(Kind.EXTRA_ROW)
    assert (outcome.action, kind_of(outcome)) == (Action.REPORT, Kind.UNGUARDABLE)
    assert one.tables.applied == []


# --- a mailbox that has lost all its truth -------------------------------------------------------


def emptied() -> Stream:
    """An orphan with evidence, in a mailbox of ten rows of which none has its truth."""
    rows = {Slot(MAILBOX, uid): row(uid=uid) for uid in range(1, RULES.empty_truth_min_rows + 1)}
    one = Stream(MemoryTables(rows={PROJECTION.name: rows}))
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    return one


def test_a_mailbox_without_truth_is_reported_once_and_loses_nothing() -> None:
    one = emptied()
    first, second = (one.settle(Kind.EXTRA_ROW) for _ in range(2))
    assert (first.action, kind_of(first)) == (Action.REPORT, Kind.MAILBOX_WITHOUT_TRUTH)
    assert (second.action, kind_of(second)) == (Action.KEEP, Kind.MAILBOX_WITHOUT_TRUTH)
    assert first.finding is not None
    assert first.finding.sentence.endswith(
        "this mailbox has lost most of its truth, or of a part: held for a person"
    )
    assert one.logged() == ["reported"]
    assert one.tables.applied == []


def test_what_a_person_accepted_is_removed_though() -> None:
    one = emptied()
    reported = one.settle(Kind.EXTRA_ROW).finding
    assert reported is not None
    one.journal.put(accepted(reported, one.now))
    assert one.settle(Kind.EXTRA_ROW).action is Action.REPAIR


@pytest.mark.parametrize(
    ("admission", "state", "ending"),
    [
        (
            Admission(removals_wait=Waiting(Wait.BREAKER, "breaker removals: 200")),
            State.HELD,
            "; held: breaker removals: 200",
        ),
        (
            Admission(repairs_wait=Waiting(Wait.CLOCKS, "clocks differ")),
            State.HELD,
            "; held: clocks differ",
        ),
        (Admission(observe=True), State.OBSERVED, "a delete of this very row was seen"),
    ],
)
def test_what_is_not_let_through_is_held_with_the_reason(
    admission: Admission, state: State, ending: str
) -> None:
    one = stream(actual=row())
    one.lineage.remember([Entry(MESSAGE_ID, Slot(MAILBOX, uid_of(SLOT)), True, LONG_AGO)])
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    finding = one.settle(Kind.EXTRA_ROW, admission).finding
    assert finding is not None
    assert (finding.state, finding.kind) == (state, Kind.EXTRA_ROW)
    assert finding.told.endswith(ending)
    assert one.tables.applied == []


WAIT = Waiting(Wait.BEHIND, "the stream is behind: node n1 wrote 300 s ago what is not there yet")
BEHIND = Admission(memory_wait=WAIT)


def alone_lost() -> Stream:
    """Of a message all of whose rows are remembered, one was lost by the truth."""
    one = stream(actual=row())
    one.lineage.watch_from(LONG_AGO)
    one.lineage.mark_listed(LONG_AGO, LONG_AGO)
    one.lineage.remember([Entry(MESSAGE_ID, SLOT, True, LONG_AGO + 30 * SECOND)])
    one.lineage.remember_deletes(
        [TruthDelete(MESSAGE_ID, (MAILBOX, None), LONG_AGO + DELAY + SECOND)]
    )
    return one


def test_while_the_stream_is_behind_a_removal_on_memory_is_held_and_done_afterwards() -> None:
    one = alone_lost()
    finding = one.settle(Kind.EXTRA_ROW, BEHIND).finding
    assert finding is not None
    assert (finding.state, finding.kind) == (State.HELD, Kind.EXTRA_ROW)
    assert finding.told.endswith(f"of the message was lost in this mailbox; held: {WAIT}")
    assert finding.next_look == one.now + RULES.recheck_interval
    assert one.tables.applied == []
    assert one.settle(Kind.EXTRA_ROW).action is Action.REPAIR
    assert one.logged() == ["held", "intended"]


def test_while_the_stream_is_behind_a_row_whose_own_delete_was_heard_is_removed() -> None:
    one = alone_lost()
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    assert one.settle(Kind.EXTRA_ROW, BEHIND).action is Action.REPAIR


def test_while_the_stream_is_behind_rows_are_added_and_corrected() -> None:
    missing, wrong = stream(wanted=truth()), stream(actual=row(flagseen=False), wanted=truth())
    assert missing.settle(Kind.MISSING_ROW, BEHIND).action is Action.REPAIR
    assert wrong.settle(Kind.DIFFERING_CELLS, BEHIND).action is Action.REPAIR


def test_while_the_stream_is_behind_a_row_whose_own_delete_was_heard_is_not_re_added() -> None:
    one = stream(wanted=truth())
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    outcome = one.settle(Kind.MISSING_ROW, BEHIND)
    assert outcome.finding is not None
    assert (outcome.finding.state, outcome.finding.kind) == (State.HELD, Kind.MISSING_ROW)
    assert one.settle(Kind.MISSING_ROW).action is Action.REPAIR


# --- what is looked at again ---------------------------------------------------------------------


def test_promise_6_a_repaired_key_comes_back_to_be_verified() -> None:
    one = stream(actual=row(flagseen=False), wanted=truth())
    assert one.settle(Kind.DIFFERING_CELLS).action is Action.REPAIR
    assert [(wake.slot, wake.looked_again) for wake in one.published] == [(SLOT, True)]
    assert [wake.suspected for wake in one.published] == [Kind.DIFFERING_CELLS]


def test_a_repair_whose_key_never_comes_back_is_due_after_four_delays() -> None:
    one = stream(actual=row(flagseen=False), wanted=truth())
    one.settle(Kind.DIFFERING_CELLS)
    assert one.finding is not None
    assert one.finding.next_look == one.now + 4 * DELAY


def test_what_is_young_comes_back_with_what_was_found_and_says_why() -> None:
    one = stream(actual=row(flagseen=False, at=NOW + DELAY), wanted=truth())
    outcome = one.settle(Kind.DIFFERING_CELLS)
    assert (outcome.action, outcome.reason) == (
        Action.LOOK_AGAIN,
        "young: written within the delay",
    )
    assert [wake.suspected for wake in one.published] == [Kind.DIFFERING_CELLS]


# --- the agenda ----------------------------------------------------------------------------------


def test_a_slot_that_agrees_names_its_projection_to_the_agenda() -> None:
    outcome = stream(actual=row(), wanted=truth()).settle(Kind.DIFFERING_CELLS)
    assert outcome == Outcome(SLOT, Action.NOTHING, None, projection=PROJECTION.name)


def test_an_observer_leaves_a_repair_of_the_live_stream_alone() -> None:
    one = stream(actual=row(flagseen=False), wanted=truth())
    one.settle(Kind.DIFFERING_CELLS)
    before = one.finding
    outcome = one.settle(Kind.DIFFERING_CELLS, Admission(observe=True))
    assert outcome == Outcome(SLOT, Action.NOTHING, None)
    assert before is not None
    assert one.finding == before


# --- what is held between two attempts


def test_what_is_held_between_two_attempts_keeps_their_count() -> None:
    """Else it would be tried for ever, a breaker and an attempt by turns."""
    one = stream(wanted=truth())
    held = Admission(repairs_wait=Waiting(Wait.BREAKER, "breaker repairs: too many"))
    tried = []
    for _ in range(RULES.attempts.most):
        one.settle(Kind.MISSING_ROW)
        one.tables.rows.clear()  # it did not hold
        one.settle(Kind.MISSING_ROW, held)
        assert one.finding is not None
        tried.append((one.finding.state, one.finding.attempts))
    assert tried[:-1] == [(State.HELD, 1), (State.HELD, 2)]
    assert tried[-1] == (State.STUCK, RULES.attempts.most)


def test_what_was_never_tried_is_held_without_a_write() -> None:
    one = stream(wanted=truth())
    one.settle(
        Kind.MISSING_ROW, Admission(repairs_wait=Waiting(Wait.BREAKER, "breaker repairs: too many"))
    )
    assert one.finding is not None
    assert (one.finding.attempts, one.finding.writes, one.finding.tried_at) == (0, (), 0)
