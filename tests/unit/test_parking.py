"""A table that refuses writes: one finding for all that waits for it, until it takes a write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from checkpoints.memory import MemoryJournal, MemoryLineage
from reconcilers.errors import Refused, Unreachable
from reconcilers.family import Projection
from reconcilers.finding import Action, Attempts, Finding, State
from reconcilers.model import Kind, Micros, Row, Slot, Suspect, Value, Wake
from reconcilers.writes import Write
from streaming.confirmation import Confirmation
from streaming.examine import Admission, Examiner, Rules
from streaming.outcome import Outcome
from streaming.parking import WHOLE_TABLE, Parking
from tests.unit.indexes import DELETED, INDEXED, LISTS, UNSEEN
from tests.unit.memory_tables import MemoryTables
from tests.unit.rows import DELAY, LONG_AGO, MAILBOX, NOW, SECOND, row, truth

RULES = Rules(
    DELAY,
    10 * SECOND,
    report_again=3600 * SECOND,
    attempts=Attempts(3, apart=DELAY),
    held_mailbox_rows=10,
)
OPEN = Admission()
SLOTS = tuple(Slot(MAILBOX, uid) for uid in range(1, 8))
GRANTED: frozenset[str] = frozenset()


def message_at(slot: Slot) -> UUID:
    return UUID(int=slot.uid << 64 | 0x1000_8000_000000000000)


@dataclass
class Tables(MemoryTables):
    """Takes writes, but for some tables, and for some rows of any."""

    refusing: frozenset[str] = GRANTED
    poisoned: frozenset[Slot] = frozenset()
    asked: list[Slot] = field(default_factory=list)

    def apply(self, writes: Sequence[Write]) -> None:
        (write,) = writes
        self.asked.append(write.slot)
        if write.projection.table in self.refusing:
            raise Refused(f"no MODIFY permission on {write.projection.table}")
        if write.slot in self.poisoned:
            raise Refused("too large")
        super().apply(writes)
        there = Row({"mailboxid": write.slot.mailboxid, "uid": write.slot.uid})
        self.rows.setdefault(write.projection.name, {})[write.slot] = there


@dataclass
class Flaky(MemoryJournal):
    """Cannot be reached when this comes to be asked of it, once."""

    clock: Callable[[], Micros]
    fails_at: Callable[[str, Finding], bool] | None = None

    def __post_init__(self) -> None:
        super().__init__(self.clock)

    def put(self, finding: Finding) -> None:
        self._fail("put", finding)
        super().put(finding)

    def close(self, finding: Finding, end: State, at: Micros) -> None:
        self._fail(f"close as {end}", finding)
        super().close(finding, end, at)

    def _fail(self, doing: str, finding: Finding) -> None:
        if self.fails_at is not None and self.fails_at(doing, finding):
            self.fails_at = None
            raise Unreachable(doing)


@dataclass
class Stream:
    """Messages that are marked and unseen, and missing in both indexes; batch after batch."""

    tables: Tables = field(default_factory=Tables)
    published: list[Wake] = field(default_factory=list)
    now: Micros = NOW
    batches: int = 0

    def __post_init__(self) -> None:
        self.journal = Flaky(lambda: self.now)
        for slot in SLOTS:
            cells: dict[str, Value] = {"uid": slot.uid, "messageid": message_at(slot)}
            cells |= {"flagdeleted": True, "flagseen": False}
            self.tables.truths[message_at(slot)] = (truth(cells),)
            self.tables.rows.setdefault(LISTS.name, {})[slot] = row(cells)

    def refuse(self, *projections: Projection) -> None:
        self.tables.refusing = frozenset(each.table for each in projections)

    def settle(
        self,
        slots: Iterable[Slot] = SLOTS,
        projection: Projection = DELETED,
        admission: Admission = OPEN,
    ) -> list[Outcome]:
        """The next batch, a delay after the last."""
        self.batches += 1
        self.now += DELAY + SECOND
        return self.execute(slots, projection, admission)

    def execute(
        self,
        slots: Iterable[Slot] = SLOTS,
        projection: Projection = DELETED,
        admission: Admission = OPEN,
    ) -> list[Outcome]:
        """The same batch, once more."""
        self.tables.asked.clear()
        self.published.clear()
        kind, name = Kind.MISSING_ROW, projection.name
        suspects = [
            Suspect(slot, frozenset({message_at(slot)}), kind, name, LONG_AGO, suspected=kind)
            for slot in slots
        ]
        return self._examiner(projection).settle(suspects, admission, f"batch {self.batches}")

    def _examiner(self, projection: Projection) -> Examiner:
        """As each worker makes one for its share."""
        confirmation = Confirmation(INDEXED, projection, self.tables, MemoryLineage())
        return Examiner(
            INDEXED,
            projection,
            self.tables,
            confirmation,
            self.journal,
            self.published.extend,
            lambda: self.now,
            RULES,
        )

    def open_ones(self) -> list[Finding]:
        return sorted(
            self.journal.open_findings(INDEXED), key=lambda each: (each.projection, each.slot)
        )

    def parked(self, projection: Projection = DELETED) -> Finding:
        """The only finding of a projection."""
        (found,) = [each for each in self.open_ones() if each.projection == projection.name]
        assert (found.slot, found.kind) == (WHOLE_TABLE, Kind.TABLE_REFUSES)
        return found

    def repaired(self, projection: Projection = DELETED) -> set[Slot]:
        return set(self.tables.rows.get(projection.name, {}))

    def logged(self, slot: Slot) -> list[object]:
        """The states that the journal's log tells of a slot, oldest first."""
        day = datetime.fromtimestamp(NOW / SECOND, UTC).date()
        place = (str(slot.mailboxid), slot.uid)
        lines = self.journal.log(day)
        return [each["state"] for each in lines if (each["mailboxid"], each["uid"]) == place]


@pytest.fixture
def stream() -> Stream:
    return Stream()


def actions(outcomes: Iterable[Outcome]) -> Counter[Action]:
    return Counter(each.action for each in outcomes)


# --- while it refuses ----------------------------------------------------------------------------


def test_there_is_one_finding_however_many_keys(stream: Stream) -> None:
    stream.refuse(DELETED)
    told, *others = stream.settle()
    assert (told.action, told.slot, told.finding) == (Action.REPORT, WHOLE_TABLE, stream.parked())
    assert others == [
        Outcome(slot, Action.LOOK_AGAIN, None, projection=DELETED.name) for slot in SLOTS
    ]
    parked = stream.parked()
    assert (parked.state, parked.next_look, parked.writes) == (State.REPORTED, None, ())
    assert parked.sentence == (
        "table messagedeleted refuses writes: no MODIFY permission on messagedeleted;"
        " what is wrong there waits"
    )


def test_all_keys_come_back_a_delay_later_with_what_was_suspected(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    assert [wake.uid for wake in stream.published] == [slot.uid for slot in SLOTS]
    assert {(wake.projection, wake.suspected) for wake in stream.published} == {
        (DELETED.name, Kind.MISSING_ROW)
    }
    assert all(wake.looked_again for wake in stream.published)


def test_it_is_asked_once_a_batch_and_its_finding_told_once(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    assert len(stream.tables.asked) == 1
    before = stream.parked()
    for _ in range(5):
        assert actions(stream.settle()) == {Action.LOOK_AGAIN: len(SLOTS)}
        assert len(stream.tables.asked) == 1
        assert len(stream.published) == len(SLOTS)
        assert stream.open_ones() == [replace(before, tried_at=stream.now)]
    assert stream.logged(WHOLE_TABLE) == ["reported"]


def test_a_write_that_is_tried_is_in_the_journal_before_and_its_end_after(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle(SLOTS[:1])
    assert stream.logged(SLOTS[0]) == ["intended", "parked"]


def test_in_another_batch_another_key_tries(stream: Stream) -> None:
    stream.refuse(DELETED)
    tried = []
    for _ in range(30):
        stream.settle()
        tried += stream.tables.asked
    assert set(tried) == set(SLOTS)


def test_other_projections_of_the_same_batch_are_repaired(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle(projection=DELETED)
    outcomes = stream.execute(projection=UNSEEN)
    assert actions(outcomes) == {Action.REPAIR: len(SLOTS)}
    assert stream.repaired(UNSEEN) == set(SLOTS)
    assert stream.repaired(DELETED) == set()
    stream.parked(DELETED)
    stream.settle(projection=UNSEEN)
    assert stream.open_ones() == [stream.parked(DELETED)]


def test_two_tables_may_refuse_at_a_time(stream: Stream) -> None:
    stream.refuse(DELETED, UNSEEN)
    stream.settle(projection=DELETED)
    stream.execute(projection=UNSEEN)
    assert stream.open_ones() == [stream.parked(DELETED), stream.parked(UNSEEN)]
    stream.refuse(UNSEEN)
    stream.settle(projection=DELETED)
    stream.settle(projection=DELETED)
    stream.execute(projection=UNSEEN)
    assert stream.open_ones() == [stream.parked(UNSEEN)]


def test_what_agrees_by_now_is_no_concern_of_a_parked_table(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    stream.tables.rows[DELETED.name] = {slot: Row({"uid": slot.uid}) for slot in SLOTS[1:]}
    outcomes = stream.settle()
    assert actions(outcomes) == {Action.LOOK_AGAIN: 1, Action.NOTHING: len(SLOTS) - 1}
    assert stream.tables.asked == [SLOTS[0]]


def test_a_batch_without_suspects_asks_nothing_of_the_journal(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream.journal, "recall", None)
    assert stream.settle([]) == []


# --- when it takes writes again ------------------------------------------------------------------


def test_everything_is_repaired_and_the_finding_healed(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    parked = stream.parked()
    stream.refuse()
    ended, *others = stream.settle()
    assert (ended.action, ended.slot, ended.finding) == (Action.CLOSE, WHOLE_TABLE, parked)
    assert ended.ended is State.HEALED
    assert actions(others) == {Action.REPAIR: len(SLOTS)}
    assert stream.repaired() == set(SLOTS)
    assert stream.logged(WHOLE_TABLE) == ["reported", "healed"]
    assert {each.attempts for each in stream.open_ones()} == {1}
    assert {each.ended for each in stream.settle()} == {State.VERIFIED}
    assert stream.open_ones() == []


def test_it_may_refuse_again(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    stream.refuse()
    stream.settle(SLOTS[:1])
    stream.refuse(DELETED)
    stream.settle(SLOTS[1:])
    assert stream.logged(WHOLE_TABLE) == ["reported", "healed", "reported"]
    assert {each.slot for each in stream.open_ones()} == {WHOLE_TABLE, SLOTS[0]}


# --- what there was before -----------------------------------------------------------------------


def test_what_was_held_waits_for_the_table_from_then_on(stream: Stream) -> None:
    held = stream.settle(admission=Admission(repairs="breaker repairs: too many"))
    assert {each.finding.state for each in held if each.finding} == {State.HELD}
    stream.refuse(DELETED)
    outcomes = stream.settle()
    closed = [each for each in outcomes if each.ended is State.PARKED]
    assert [each.slot for each in closed] == list(SLOTS)
    stream.parked()
    assert stream.logged(SLOTS[6]) == ["held", "parked"]


def test_a_breaker_holds_as_ever_and_nobody_tries(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    outcomes = stream.settle(admission=Admission(repairs="breaker repairs: too many"))
    assert {each.finding.state for each in outcomes if each.finding} == {State.HELD}
    assert stream.tables.asked == []


def test_an_attempt_that_did_not_hold_waits_too(stream: Stream) -> None:
    stream.settle()
    del stream.tables.rows[DELETED.name]
    stream.refuse(DELETED)
    for _ in range(RULES.attempts.most + 2):
        stream.settle()
        stream.parked()
    stream.refuse()
    stream.settle()
    assert {each.attempts for each in stream.open_ones()} == {1}


def test_what_a_person_accepted_is_not_forgotten(stream: Stream) -> None:
    (reported,) = SLOTS[:1]
    stream.settle([reported], admission=Admission(repairs="breaker"))
    (finding,) = stream.open_ones()
    stream.journal.put(replace(finding, state=State.REPORTED, accepted=True))
    stream.refuse(DELETED)
    for _ in range(3):
        (told,) = [each for each in stream.settle(SLOTS) if each.action is Action.KEEP]
        assert told.finding is not None
        assert (told.slot, told.finding.state) == (reported, State.HELD)
        waiting, parked = sorted(stream.open_ones(), key=lambda each: -each.slot.uid)
        assert (waiting.slot, waiting.accepted, waiting.writes) == (reported, True, ())
        assert parked.slot == WHOLE_TABLE
        assert not parked.accepted
    stream.refuse()
    stream.settle(SLOTS)
    assert {each.slot for each in stream.open_ones() if each.accepted} == {reported}
    stream.settle(SLOTS)
    assert stream.open_ones() == []


# --- observe mode --------------------------------------------------------------------------------


def test_an_observer_writes_nothing_and_parks_nothing(stream: Stream) -> None:
    stream.refuse(DELETED)
    outcomes = stream.settle(admission=Admission(observe=True))
    assert {each.finding.state for each in outcomes if each.finding} == {State.OBSERVED}
    assert stream.tables.asked == []
    assert {each.state for each in stream.open_ones()} == {State.OBSERVED}


def test_an_observer_leaves_the_live_streams_parked_table_alone(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    before = stream.parked()
    stream.refuse()
    stream.settle(admission=Admission(observe=True))
    assert stream.tables.asked == []
    assert before in stream.open_ones()


# --- a row that is refused where others are taken ------------------------------------------------


def test_a_row_that_is_refused_by_itself_is_held_and_parks_nothing(stream: Stream) -> None:
    poisoned = SLOTS[3]
    stream.tables.poisoned = frozenset({poisoned})
    outcomes = stream.settle()
    assert actions(outcomes) == {Action.REPAIR: len(SLOTS) - 1, Action.KEEP: 1}
    (held,) = [each for each in stream.open_ones() if each.state is State.HELD]
    assert held.slot == poisoned
    assert held.sentence.endswith("held: its table takes others, not this: too large")
    assert held.next_look == stream.now + RULES.report_again
    for _ in range(RULES.attempts.most):  # now it comes alone
        stream.settle([poisoned])
    (stuck,) = [each for each in stream.open_ones() if each.slot == poisoned]
    assert (stuck.state, stuck.attempts) == (State.STUCK, RULES.attempts.most)
    assert WHOLE_TABLE not in {each.slot for each in stream.open_ones()}


def test_such_a_row_keeps_the_others_waiting_only_for_a_while(stream: Stream) -> None:
    poisoned = SLOTS[0]
    stream.tables.poisoned = frozenset({poisoned})
    stream.settle()
    stream.parked()
    for _ in range(20):
        stream.settle()
    assert stream.repaired() == set(SLOTS) - {poisoned}
    (left,) = stream.open_ones()
    assert (left.slot, left.state) == (poisoned, State.STUCK)


# --- crashes -------------------------------------------------------------------------------------

CRASHES: dict[str, Callable[[str, Finding], bool]] = {
    "before the table's finding": lambda doing, at: doing == "put" and at.slot == WHOLE_TABLE,
    "before the intent is closed": lambda doing, at: doing == "close as parked",
}


@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_while_parking_leaves_what_the_batch_puts_right(stream: Stream, crash: str) -> None:
    stream.refuse(DELETED)
    stream.journal.fails_at = CRASHES[crash]
    with pytest.raises(Unreachable):
        stream.settle()
    assert State.INTENDED in {each.state for each in stream.open_ones()}
    stream.execute()
    stream.parked()
    assert len(stream.published) == len(SLOTS)


@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_while_parking_is_put_right_by_the_next_look_of_the_key(
    stream: Stream, crash: str
) -> None:
    """Where the batch is never executed again: a checkpoint was lost."""
    stream.refuse(DELETED)
    stream.journal.fails_at = CRASHES[crash]
    with pytest.raises(Unreachable):
        stream.settle()
    stream.settle()
    stream.parked()
    stream.refuse()
    stream.settle()
    stream.settle()
    assert stream.open_ones() == []
    assert stream.repaired() == set(SLOTS)


@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_while_parking_counts_no_attempt(stream: Stream, crash: str) -> None:
    stream.refuse(DELETED)
    stream.journal.fails_at = CRASHES[crash]
    with pytest.raises(Unreachable):
        stream.settle()
    stream.refuse()
    stream.execute()
    assert {each.attempts for each in stream.open_ones() if each.slot != WHOLE_TABLE} == {1}
    stream.settle()
    assert stream.open_ones() == []


def test_a_crash_before_the_tables_finding_is_healed_heals_it_later(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    stream.refuse()
    stream.journal.fails_at = lambda doing, at: doing == "close as healed"
    with pytest.raises(Unreachable):
        stream.settle()
    (ended,) = [each for each in stream.execute() if each.action is Action.CLOSE]
    assert (ended.slot, ended.ended) == (WHOLE_TABLE, State.HEALED)
    stream.settle()
    assert stream.open_ones() == []


# --- the book of parked tables -------------------------------------------------------------------


def test_another_process_recalls_what_is_parked(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    parking = Parking(INDEXED, stream.journal, lambda: stream.now)
    assert parking.parked(DELETED.name) is None
    parking.recall(DELETED.name)
    assert parking.parked(DELETED.name) == stream.parked()
    parking.recall(UNSEEN.name)
    assert parking.parked(UNSEEN.name) is None
    stream.journal.close(stream.parked(), State.HEALED, stream.now)
    parking.recall(DELETED.name)
    assert parking.parked(DELETED.name) is None
    assert parking.freed(DELETED.name) is None
