"""A counter table that refuses deltas: one finding for it, none for each mailbox."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

import pytest

from reconcilers.counters.open_message import NO_MARGIN, Margin
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Sum, Sums, Tally
from reconcilers.declared.writes import AddToCounter
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Deferred, Refused
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros
from streaming.counters.correct import Conclusion, Corrector
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_findings import CorrectionLimits, CounterFindings
from streaming.counters.counter_row import CounterRow
from streaming.steps.parking import Parking
from tests.builders.counter_breakers import correction_breaker
from tests.builders.permits import nothing_paused
from tests.builders.rows import NOW, SECOND
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.tallies import MemoryRounds

AGAIN = 600 * SECOND
MAILBOXES = tuple(UUID(int=number) for number in (1, 2, 3))
TRUE: Sums = {Sum.COUNT: 2, Sum.UNSEEN: 1, Sum.SIZE: 100}
WRONG: Sums = {Sum.COUNT: 3, Sum.UNSEEN: 0}


@dataclass
class Counters:
    """Each mailbox's count is too high by three."""

    refusing: bool = True
    asked: list[UUID | str] = field(default_factory=list)
    added: dict[UUID | str, int] = field(default_factory=dict)

    def stored(self, tally: Tally, key: UUID | str) -> Sums:
        return {Sum.COUNT: 5 + self.added.get(key, 0), Sum.UNSEEN: 1}

    def add(self, write: AddToCounter) -> None:
        self.asked.append(write.key)
        if self.refusing:
            raise Refused("no MODIFY permission")
        self.added[write.key] = write.deltas[Sum.COUNT]


class NothingOpen:
    """No message has an open finding."""

    def margin(self, mailboxids: Collection[UUID]) -> Margin:
        return NO_MARGIN


class Right:
    """What it should be."""

    open = NothingOpen()

    def clock(self) -> Micros:
        return NOW

    def anew(self, mailboxids: Collection[UUID]) -> Sums:
        return TRUE


@dataclass
class Desk:
    """Corrections with everything around them in memory."""

    now: Micros = NOW
    tables: Counters = field(default_factory=Counters)
    rounds: MemoryRounds = field(default_factory=MemoryRounds)
    told: list[tuple[Kind, State]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.journal = MemoryJournal(lambda: self.now)
        self.parking = Parking(MAILBOX_TALLY, self.journal, lambda: self.now)
        limits = CorrectionLimits(
            attempts=3, most=dict.fromkeys(Sum, 100), again=AGAIN, prompt=SECOND
        )
        self.open = CounterFindings(
            journal=self.journal,
            parking={MAILBOX_TALLY.name: self.parking},
            clock=lambda: self.now,
            limits=limits,
            told=lambda finding, end: self.told.append((finding.kind, end or finding.state)),
        )
        self.correcting = Corrector(
            findings=self.open,
            tables=self.tables,
            counting=cast(MailboxCounter, Right()),
            rounds=self.rounds,
            clock=lambda: self.now,
            limits=limits,
            breaker=correction_breaker(self.journal, lambda: self.now),
            trouble=lambda: None,
            pauses=nothing_paused,
            steady=lambda: self.now / 1e6,
            whole=lambda _: True,
        )

    def correct(self, mailbox: UUID) -> None:
        """As the watch does: what waits for its table is left alone, else it is told."""
        subject = CounterRow(MAILBOX_TALLY.name, MAILBOX_COUNTERS, mailbox)
        if self.open.waits_for_table(subject):
            return
        round_ = self.rounds.current(MAILBOX_COUNTERS.name, str(mailbox))
        try:
            looked = Conclusion(frozenset({mailbox}), round_, {Sum.COUNT: WRONG[Sum.COUNT]})
            self.correcting.correct(subject, looked, None)
        except Deferred as why:
            self.open.defer(subject, why.waiting)

    @property
    def findings(self) -> list[Finding]:
        return list(self.journal.open_findings(MAILBOX_TALLY))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_one_finding_stands_for_every_mailbox(desk: Desk) -> None:
    for mailbox in MAILBOXES:
        desk.correct(mailbox)
    (parked,) = desk.findings
    assert (parked.slot, parked.kind) == (WHOLE_TABLE, Kind.TABLE_REFUSES)
    assert "table mailboxcounters refuses writes" in parked.sentence
    assert desk.told.count((Kind.TABLE_REFUSES, State.REPORTED)) == 1


def test_it_is_left_alone_for_a_time_each_time(desk: Desk) -> None:
    desk.correct(MAILBOXES[0])
    for mailbox in MAILBOXES:
        desk.correct(mailbox)
    assert desk.tables.asked == [MAILBOXES[0]]
    for mailbox in MAILBOXES[1:]:
        desk.now += AGAIN + 1
        for each in (mailbox, *MAILBOXES):
            desk.correct(each)
    assert desk.tables.asked == list(MAILBOXES)
    assert [each.slot for each in desk.findings] == [WHOLE_TABLE]


def test_a_process_that_starts_later_leaves_it_alone_too(desk: Desk) -> None:
    desk.correct(MAILBOXES[0])
    later = Parking(MAILBOX_TALLY, desk.journal, lambda: desk.now)
    desk.open.parking = {MAILBOX_TALLY.name: later}
    desk.open.recall()
    for mailbox in MAILBOXES:
        desk.correct(mailbox)
    assert desk.tables.asked == [MAILBOXES[0]]


def test_it_is_healed_by_the_first_delta_that_is_taken(desk: Desk) -> None:
    desk.correct(MAILBOXES[0])
    desk.tables.refusing = False
    desk.now += AGAIN + 1
    for mailbox in MAILBOXES:
        desk.correct(mailbox)
    assert desk.tables.added == dict.fromkeys(MAILBOXES, -3)
    assert (Kind.TABLE_REFUSES, State.HEALED) in desk.told
    assert {each.state for each in desk.findings} == {State.INTENDED}


def test_no_round_is_used_twice(desk: Desk) -> None:
    """A refused delta has used its round up: the next one has its own."""
    desk.correct(MAILBOXES[0])
    desk.tables.refusing = False
    desk.now += AGAIN + 1
    desk.correct(MAILBOXES[0])
    (finding,) = desk.findings
    (write,) = finding.writes
    assert isinstance(write, AddToCounter)
    assert write.round == desk.rounds.current(MAILBOX_COUNTERS.name, str(MAILBOXES[0])) == 2
