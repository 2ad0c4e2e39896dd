"""A row that the server does not read is a finding; the others of its batch are repaired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from reconcilers.declared.family import Projection
from reconcilers.rows.decision import retried
from reconcilers.rows.deletes import ProjectionDelete
from reconcilers.rows.finding import Action, State
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import KeyValue, Kind, Row, Slot, Suspect
from streaming.steps.outcome import Outcome
from tests.builders.examining import Stream as Single
from tests.builders.indexes import DELETED, INDEXED, LISTS
from tests.builders.permits import permit
from tests.builders.rows import LONG_AGO, PROJECTION, SLOT, row
from tests.fakes.refusing import RULES, SLOTS, Stream, Tables, message_at

BAD = SLOTS[3]
OTHERS = set(SLOTS) - {BAD}


@dataclass
class Poisoned(Tables):
    """Some rows cannot be read, nor some mailbox as a whole."""

    bad: set[Slot] = field(default_factory=set)
    error: type[Exception] = ReadFailed
    scan_fails: bool = False

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        wanted = list(slots)
        if self.bad.intersection(wanted):
            raise self.error("too many tombstones")
        return super().projection_with_times(projection, wanted)

    def slots_of_group(
        self, projection: Projection, group: KeyValue
    ) -> Iterator[tuple[Slot, KeyValue | None]]:
        if self.scan_fails:
            raise ReadFailed("too many tombstones")
        yield from super().slots_of_group(projection, group)


@pytest.fixture
def tables() -> Poisoned:
    return Poisoned(bad={BAD})


@pytest.fixture
def stream(tables: Poisoned) -> Stream:
    return Stream(tables)


@pytest.mark.parametrize("error", [ReadFailed, Refused])
def test_it_is_a_finding_and_the_others_are_repaired(
    stream: Stream, tables: Poisoned, error: type[Exception]
) -> None:
    tables.error = error
    stream.settle()
    assert stream.repaired() == OTHERS
    (found,) = [each for each in stream.open_ones() if each.kind is Kind.UNREADABLE]
    assert (found.slot, found.state) == (BAD, State.REPORTED)
    assert found.sentence.endswith("cannot be read, and is not judged: too many tombstones")
    assert found.source == str(message_at(BAD))
    assert found.next_look == stream.now + RULES.recheck_interval


def test_it_is_told_once(stream: Stream) -> None:
    def told(outcomes: list[Outcome]) -> list[Action]:
        return [each.action for each in outcomes if each.slot == BAD]

    assert told(stream.settle()) == [Action.REPORT]
    assert told(stream.settle([BAD])) == [Action.KEEP]


def test_it_is_repaired_when_it_can_be_read(stream: Stream, tables: Poisoned) -> None:
    stream.settle()
    tables.bad.clear()
    stream.settle([BAD])
    assert stream.repaired() == set(SLOTS)


def test_it_heals_when_it_can_be_read_and_is_right(stream: Stream, tables: Poisoned) -> None:
    stream.settle()
    tables.bad.clear()
    tables.rows[DELETED.name][BAD] = Row({"mailboxid": BAD.key[0], "uid": BAD.key[1]})
    (ended,) = [each for each in stream.settle([BAD]) if each.action is Action.CLOSE]
    assert (ended.slot, ended.ended) == (BAD, State.HEALED)


def test_a_person_may_ask_for_it_to_be_tried_again(stream: Stream) -> None:
    stream.settle()
    (found,) = [each for each in stream.open_ones() if each.slot == BAD]
    stream.journal.put(retried(found, stream.now))
    (told,) = stream.settle([BAD])
    assert (told.action, told.finding and told.finding.state) == (Action.REPORT, State.REPORTED)


def test_where_nothing_can_be_read_no_row_is_blamed(stream: Stream, tables: Poisoned) -> None:
    """Of an index that is told of the table, once."""
    tables.bad.add(INDEXED.nowhere)
    stream.settle()
    assert {each.kind for each in stream.open_ones()} <= {Kind.TABLE_UNREADABLE}


def test_what_the_look_could_not_read_is_not_read_again(stream: Stream, tables: Poisoned) -> None:
    tables.bad.clear()
    place = INDEXED.whole_group(BAD.group)
    suspect = Suspect(place, frozenset(), None, LISTS.name, LONG_AGO, unreadable="tombstones")
    (told,) = stream._examiner(LISTS).examine([suspect], permit(), "batch 1")
    assert told.finding is not None
    assert told.finding.kind is Kind.UNREADABLE
    assert f"mailbox {BAD.group} as a whole cannot be read" in told.finding.sentence
    again = replace(suspect, unreadable=None, looked_again=True)
    (ended,) = stream._examiner(LISTS).examine([again], permit(), "batch 2")
    assert (ended.action, ended.ended) == (Action.CLOSE, State.HEALED)


def test_no_row_is_removed_from_a_mailbox_that_cannot_be_read_as_a_whole() -> None:
    one = Single(Poisoned(rows={PROJECTION.name: {SLOT: row()}}, scan_fails=True))
    one.lineage.remember_deletes([ProjectionDelete(SLOT, LONG_AGO)])
    told = one.settle(Kind.EXTRA_ROW)
    assert (told.action, told.finding and told.finding.kind) == (Action.REPORT, Kind.UNREADABLE)
    assert one.tables.applied == []
