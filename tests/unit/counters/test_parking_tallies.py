"""A counter table that refuses deltas: one finding for it, none for each mailbox."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Sum
from reconcilers.declared.writes import AddToCounter
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Refused
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind
from streaming.counters.correct import Conclusion
from tests.builders.counters import AGAIN, BOB, OF_MAILBOX, Bench, message

MAILBOXES = tuple(UUID(int=number, version=1) for number in (1, 2, 3))


class Desk(Bench):
    """The counter of each mailbox is too high by three; its table may refuse writes."""

    refusing: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked: list[UUID] = []
        self.sends = self.tables.add
        self.tables.add = self.asks  # type: ignore[method-assign]
        for mailbox in MAILBOXES:
            self.tables.give(mailbox, BOB)
            self.tables.hold(mailbox, message(1), message(2, seen=True))
            self.tables.rows[MAILBOX_COUNTERS.name, mailbox] = {Sum.COUNT: 5, Sum.UNSEEN: 1}

    def asks(self, write: AddToCounter) -> None:
        assert isinstance(write.key, UUID)
        self.asked.append(write.key)
        if self.refusing:
            raise Refused("no MODIFY permission")
        self.sends(write)

    def correct(self, *mailboxes: UUID) -> None:
        """As the watch does: what waits for its table is left alone."""
        for mailbox in mailboxes:
            counter = replace(OF_MAILBOX, key=mailbox)
            if not self.findings.waits_for_table(counter):
                round_ = self.rounds.current(MAILBOX_COUNTERS.name, str(mailbox))
                looked = Conclusion(frozenset({mailbox}), round_, {Sum.COUNT: 3})
                self.correcting.correct(counter, looked, None)

    @property
    def open_ones(self) -> list[Finding]:
        return list(self.journal.open_findings(MAILBOX_TALLY))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_one_finding_stands_for_every_mailbox(desk: Desk) -> None:
    desk.correct(*MAILBOXES)
    (parked,) = desk.open_ones
    assert (parked.slot, parked.kind) == (WHOLE_TABLE, Kind.TABLE_REFUSES)
    assert "table mailboxcounters refuses writes" in parked.sentence
    told = [(each.kind, end or each.state) for each, end in desk.told]
    assert told.count((Kind.TABLE_REFUSES, State.REPORTED)) == 1


def test_it_is_left_alone_for_a_time_each_time(desk: Desk) -> None:
    desk.correct(MAILBOXES[0], *MAILBOXES)
    assert desk.asked == [MAILBOXES[0]]
    for mailbox in MAILBOXES[1:]:
        desk.now += AGAIN + 1
        desk.correct(mailbox, *MAILBOXES)
    assert desk.asked == list(MAILBOXES)
    assert [each.slot for each in desk.open_ones] == [WHOLE_TABLE]


def test_a_process_that_starts_later_leaves_it_alone_too(desk: Desk) -> None:
    desk.correct(MAILBOXES[0])
    desk.begin()
    desk.recall()
    desk.correct(*MAILBOXES)
    assert desk.asked == [MAILBOXES[0]]


def test_it_is_healed_by_the_first_delta_that_is_taken(desk: Desk) -> None:
    desk.correct(MAILBOXES[0])
    desk.refusing = False
    desk.now += AGAIN + 1
    desk.correct(*MAILBOXES)
    assert [each.key for each in desk.tables.added] == list(MAILBOXES)
    assert all(each.deltas == {Sum.COUNT: -3} for each in desk.tables.added)
    assert (Kind.TABLE_REFUSES, State.HEALED) in [(each.kind, end) for each, end in desk.told]
    assert {each.state for each in desk.open_ones} == {State.INTENDED}


def test_no_round_is_used_twice(desk: Desk) -> None:
    """A refused delta has used its round up: the next one has its own."""
    desk.correct(MAILBOXES[0])
    desk.refusing = False
    desk.now += AGAIN + 1
    desk.correct(MAILBOXES[0])
    (finding,) = desk.open_ones
    (write,) = finding.writes
    assert isinstance(write, AddToCounter)
    assert write.round == desk.rounds.current(MAILBOX_COUNTERS.name, str(MAILBOXES[0])) == 2
