"""What cannot be read is one finding: an index holds up no other, a row none of its batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.declared.family import Projection
from reconcilers.rows.decision import retried
from reconcilers.rows.deletes import ProjectionDelete
from reconcilers.rows.finding import Action, State
from reconcilers.words.errors import ReadFailed, Refused, Unreachable
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import NO_PROJECTION, Kind, Row, Slot, Suspect, Wake
from streaming.pipeline.scheduled_looks import spread
from streaming.steps.look import Look, LookResult
from streaming.steps.outcome import Outcome
from tests.builders.examining import RULES
from tests.builders.examining import Stream as Single
from tests.builders.indexes import DELETED, INDEXED, LISTS, UNSEEN
from tests.builders.permits import permit
from tests.builders.rows import LONG_AGO, NOW, PROJECTION, SECOND, SLOT, row
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.refusing import SLOTS, Stream, Tables, message_at


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def unreadable(stream: Stream) -> Stream:
    """The index of deleted messages refuses to be read."""
    stream.tables.unreadable = frozenset({DELETED.table})
    return stream


def look(stream: Stream, *again: Slot) -> LookResult:
    """At all slots; some come back for the index of deleted messages."""
    wakes = [Wake(slot.key, message_at(slot), oldest=1) for slot in SLOTS]
    wakes += [
        Wake(
            slot.key,
            message_at(slot),
            looked_again=True,
            projection=DELETED.name,
            suspected=Kind.MISSING_ROW,
        )
        for slot in again
    ]
    return Look(INDEXED, stream.tables, MemoryLineage()).at(wakes, stream.now)


# --- steps 3 and 4 -------------------------------------------------------------------------------


def test_the_others_are_compared_and_one_slot_tells_of_the_table(unreadable: Stream) -> None:
    looked = look(unreadable)
    named = [each for each in looked.suspects if each.projection == DELETED.name]
    assert [(each.slot, each.kind) for each in named] == [(SLOTS[0], None)]
    compared = {each.slot for each in looked.suspects if each.projection == UNSEEN.name}
    assert compared == set(SLOTS)


def test_all_slots_are_looked_at_later(stream: Stream) -> None:
    assert look(stream).later == ()
    stream.tables.unreadable = frozenset({DELETED.table})
    assert set(look(stream).later) == set(SLOTS)


def test_the_slot_that_comes_back_tells_of_the_table(unreadable: Stream) -> None:
    looked = look(unreadable, SLOTS[3], SLOTS[5])
    (told,) = [each for each in looked.suspects if each.projection == DELETED.name]
    assert (told.slot, told.looked_again, told.suspected) == (SLOTS[3], True, Kind.MISSING_ROW)


@pytest.mark.parametrize("table", [LISTS.table, INDEXED.truth.table])
def test_without_the_truth_or_the_list_nothing_is_judged(stream: Stream, table: str) -> None:
    stream.tables.unreadable = frozenset({table})
    with pytest.raises(Refused):
        look(stream)


@pytest.mark.parametrize("slot", SLOTS)
def test_whoever_asks_for_the_later_look_of_a_slot_asks_for_the_same(slot: Slot) -> None:
    every = 600 * SECOND
    at = spread(slot, NOW, every)
    assert NOW + every < at <= NOW + 2 * every
    assert spread(slot, at - 2 * every, every) == at
    assert spread(slot, at - every - 1, every) == at
    assert spread(slot, at, every) == at + 2 * every


def test_a_later_look_confirms_only_what_differs(stream: Stream) -> None:
    wakes = [Wake(slot.key, None, looked_again=True, projection=NO_PROJECTION) for slot in SLOTS]
    looked = Look(INDEXED, stream.tables, MemoryLineage()).at(wakes, stream.now)
    assert LISTS.name not in {each.projection for each in looked.suspects}
    assert {each.slot for each in looked.suspects} == set(SLOTS)


# --- steps 5 to 7 --------------------------------------------------------------------------------


def test_it_is_one_finding_and_the_keys_come_back(unreadable: Stream) -> None:
    (told,) = unreadable.settle()
    (found,) = unreadable.open_ones()
    assert (told.action, told.finding, told.slot) == (Action.REPORT, found, WHOLE_TABLE)
    assert (found.kind, found.slot) == (Kind.TABLE_UNREADABLE, WHOLE_TABLE)
    assert "table messagedeleted cannot be read: no SELECT permission" in found.sentence
    assert {Slot(wake.key[0], wake.key[1]) for wake in unreadable.published} == set(SLOTS)  # type: ignore[arg-type]
    assert unreadable.tables.asked == []
    assert unreadable.settle() == []  # it is told once
    (after,) = unreadable.open_ones()
    assert after.tried_at > found.tried_at


def test_it_ends_when_the_table_can_be_read(unreadable: Stream) -> None:
    unreadable.settle()
    unreadable.tables.unreadable = frozenset()
    ended = [each for each in unreadable.settle() if each.action is Action.CLOSE]
    assert [(each.slot, each.ended) for each in ended] == [(WHOLE_TABLE, State.HEALED)]
    assert unreadable.repaired() == set(SLOTS)


def test_that_it_can_be_read_does_not_say_that_it_takes_writes(stream: Stream) -> None:
    stream.refuse(DELETED)
    stream.settle()
    outcomes = stream.settle()
    assert not [each for each in outcomes if each.action is Action.CLOSE]
    assert stream.parked().kind is Kind.TABLE_REFUSES


def test_the_keys_come_back_though_the_finding_could_not_be_written(unreadable: Stream) -> None:
    """Else nothing would end it, were the table readable when the batch is done again."""
    unreadable.journal.fails_at = lambda doing, _: doing == "put"
    with pytest.raises(Unreachable):
        unreadable.settle()
    assert len(unreadable.published) == len(SLOTS)


def test_it_can_be_read_again_but_not_written(unreadable: Stream) -> None:
    unreadable.settle()
    unreadable.tables.unreadable = frozenset()
    unreadable.refuse(DELETED)
    unreadable.settle()
    assert unreadable.parked().kind is Kind.TABLE_REFUSES


def test_other_indexes_are_settled_meanwhile(unreadable: Stream) -> None:
    unreadable.settle()
    unreadable.settle(projection=UNSEEN)
    assert unreadable.repaired(UNSEEN) == set(SLOTS)


@pytest.mark.parametrize("projection", [LISTS, DELETED])
@pytest.mark.parametrize("table", [LISTS.table, INDEXED.truth.table])
def test_the_list_is_not_parked_nor_a_table_for_what_another_refuses(
    stream: Stream, table: str, projection: Projection
) -> None:
    stream.tables.unreadable = frozenset({table})
    with pytest.raises(Refused):
        stream.settle(projection=projection)
    assert stream.open_ones() == []


# --- a row ----------------------------------------------------------------------------------------

BAD = SLOTS[3]
OTHERS = set(SLOTS) - {BAD}


@pytest.fixture
def poisoned() -> Stream:
    return Stream(Tables(bad={BAD}))


@pytest.mark.parametrize("error", [ReadFailed, Refused])
def test_a_row_is_a_finding_and_the_others_are_repaired(
    poisoned: Stream, error: type[Exception]
) -> None:
    poisoned.tables.error = error("too many tombstones")
    poisoned.settle()
    assert poisoned.repaired() == OTHERS
    (found,) = [each for each in poisoned.open_ones() if each.kind is Kind.UNREADABLE]
    assert (found.slot, found.state) == (BAD, State.REPORTED)
    assert found.sentence.endswith("cannot be read, and is not judged: too many tombstones")
    assert found.source == str(message_at(BAD))
    assert found.next_look == poisoned.now + RULES.recheck_interval


def test_a_row_is_told_once(poisoned: Stream) -> None:
    def told(outcomes: list[Outcome]) -> list[Action]:
        return [each.action for each in outcomes if each.slot == BAD]

    assert told(poisoned.settle()) == [Action.REPORT]
    assert told(poisoned.settle([BAD])) == [Action.KEEP]


def test_a_row_is_repaired_when_it_can_be_read(poisoned: Stream) -> None:
    poisoned.settle()
    poisoned.tables.bad.clear()
    poisoned.settle([BAD])
    assert poisoned.repaired() == set(SLOTS)


def test_a_row_heals_when_it_can_be_read_and_is_right(poisoned: Stream) -> None:
    poisoned.settle()
    poisoned.tables.bad.clear()
    poisoned.tables.rows[DELETED.name][BAD] = Row({"mailboxid": BAD.key[0], "uid": BAD.key[1]})
    (ended,) = [each for each in poisoned.settle([BAD]) if each.action is Action.CLOSE]
    assert (ended.slot, ended.ended) == (BAD, State.HEALED)


def test_a_person_may_ask_for_it_to_be_tried_again(poisoned: Stream) -> None:
    poisoned.settle()
    (found,) = [each for each in poisoned.open_ones() if each.slot == BAD]
    poisoned.journal.put(retried(found, poisoned.now))
    (told,) = poisoned.settle([BAD])
    assert (told.action, told.finding and told.finding.state) == (Action.REPORT, State.REPORTED)


def test_where_nothing_can_be_read_no_row_is_blamed(poisoned: Stream) -> None:
    """Of an index that is told of the table, once."""
    poisoned.tables.bad.add(INDEXED.nowhere)
    poisoned.settle()
    assert {each.kind for each in poisoned.open_ones()} <= {Kind.TABLE_UNREADABLE}


def test_what_the_look_could_not_read_is_not_read_again(poisoned: Stream) -> None:
    poisoned.tables.bad.clear()
    place = INDEXED.whole_group(BAD.group)
    suspect = Suspect(place, frozenset(), None, LISTS.name, LONG_AGO, unreadable="tombstones")
    (told,) = poisoned._examiner(LISTS).examine([suspect], permit(), "batch 1")
    assert told.finding is not None
    assert told.finding.kind is Kind.UNREADABLE
    assert f"mailbox {BAD.group} as a whole cannot be read" in told.finding.sentence
    again = replace(suspect, unreadable=None, looked_again=True)
    (ended,) = poisoned._examiner(LISTS).examine([again], permit(), "batch 2")
    assert (ended.action, ended.ended) == (Action.CLOSE, State.HEALED)


def test_no_row_is_removed_from_a_mailbox_that_cannot_be_read_as_a_whole() -> None:
    one = Single(
        Tables(rows={PROJECTION.name: {SLOT: row()}}, scan_fails=ReadFailed("too many tombstones"))
    )
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    told = one.settle(Kind.EXTRA_ROW)
    assert (told.action, told.finding and told.finding.kind) == (Action.REPORT, Kind.UNREADABLE)
    assert one.tables.applied == []
