"""A command on many messages writes their counter once, at its end (design_review C1).

The product's own looks and corrections, over a mailbox of which only the number of messages is
kept: so that a copy of 100,000 mails is as cheap as one of 100.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.counters.late import MANY, under_way
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.declared.tally import Sum, Sums
from reconcilers.words.model import Micros
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.both_sides import BothSides
from streaming.counters.count import CountedRange, MailboxCounter
from streaming.counters.mailbox_changes import NumberedChanges
from streaming.counters.open_messages import OpenMessages
from streaming.counters.recent_changes import RecentChanges
from tests.builders.counters import NODE, OF_MAILBOX, Bench, K
from tests.builders.rows import DELAY, MAILBOX, NOW, SECOND
from tests.fakes.checkpoints.tallies import MemoryTallies

L = 1800.0
WINDOW = 5
D = DELAY // SECOND
AN_HOUR = 3_600
QUIET = L + 3 * K * (2 * D + WINDOW + 60)
"""Seconds: after the last change of a command, until its counter must be exact."""


@dataclass(frozen=True)
class Command:
    """A copy into the mailbox, or an expunge there: rows a second, then its counter."""

    begins: float
    messages: int
    rate: float
    adds: int = 1
    answers_in: float = 1.0

    @property
    def ends(self) -> float:
        return self.begins + self.messages / self.rate

    def done(self, at: float) -> int:
        """How many rows are written at a time."""
        return max(0, min(self.messages, int((at - self.begins) * self.rate)))

    def counted(self, at: float) -> int:
        return self.messages if at >= self.ends + self.answers_in else 0


@dataclass(frozen=True)
class Listing:
    """As many messages as there are now."""

    messages: list[int]
    sides: BothSides
    open: OpenMessages
    watched: MemoryTallies
    tallies: MemoryTallies
    clock: Callable[[], Micros]

    def sums(self, mailboxids: Collection[UUID]) -> Sums:
        return {Sum.COUNT: self.messages[0], Sum.UNSEEN: 0, Sum.SIZE: 0}

    anew = sums

    def range_against_truth(self, mailboxid: UUID, first: int) -> CountedRange:
        return CountedRange({0: self.sums([mailboxid])})


@dataclass
class Large(Bench):
    """A mailbox with ``old`` messages and a counter that is wrong by ``error``."""

    lag: float = L
    most: Sums = field(default_factory=lambda: dict.fromkeys(Sum, 10**9))
    old: int = 50_000
    error: int = 0
    commands: tuple[Command, ...] = ()
    messages: list[int] = field(default_factory=lambda: [0])
    _seen: int = 0
    _written: int = 0
    _again_at: float = float("inf")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.messages[0] = self.old
        self.set_counter(self.old + self.error, 0)

    def counting(self) -> MailboxCounter:
        kept = self.tallies, self.tallies
        return cast(
            MailboxCounter,
            Listing(self.messages, self.sides, self.open_messages, *kept, self.clock),
        )

    # --- time

    @property
    def at(self) -> float:
        return (self.now - NOW) / SECOND

    def off(self) -> int:
        """The true error: what is under way will still be written."""
        coming = sum(
            each.adds * (each.done(self.at) - each.counted(self.at)) for each in self.commands
        )
        return self.counter()[0] + coming - self.messages[0]

    def go_on(self, until: float) -> None:
        """The stream and the counting thread; an hour's marks are read again when it is written."""
        while self.at < until:
            self.now += WINDOW * SECOND
            self._james()
            out = sum(each.done(self.at - D - WINDOW) for each in self.commands)
            proven: Micros = (self.now - DELAY) // SECOND - WINDOW
            changes, self._seen = {MAILBOX: out - self._seen}, out
            self.canaries.number = self.now // SECOND
            self.watch.take(BatchSummary(changes if out else {}, {NODE: proven}))
            if changes[MAILBOX]:
                self._again_at = self.at + L + D + AN_HOUR
            if changes[MAILBOX] or self.at >= self._again_at:
                self.watch.expect([OF_MAILBOX])
            self._work()

    def restart(self, at: float | None) -> None:
        """A new process from then on; the mailbox is marked."""
        if at is not None:
            self.go_on(at)
            self.begin()
            self.watch.expect([OF_MAILBOX])

    def _james(self) -> None:
        self.messages[0] = self.old + sum(e.adds * e.done(self.at) for e in self.commands)
        written = sum(each.adds * each.counted(self.at) for each in self.commands)
        stored = self.tables.rows[MAILBOX_COUNTERS.name, MAILBOX] or {}
        self.set_counter(stored[Sum.COUNT] + written - self._written, 0)
        self._written = written

    def _work(self) -> None:
        before, sent = self.off(), len(self.tables.added)
        self.work()
        assert abs(self.off()) <= abs(before), f"{self.tables.added[sent:]} at {self.at} s: worse"


COPY = Command(60, 20_000, 150)
EXPUNGE = Command(60, 20_000, 150, adds=-1)
LATE = Command(60, 150, 30, answers_in=900)
OF_THE_REVIEW = Command(0, 100_000, 150)
"""C1: 8,250 was added at 345 s, and 100,000 by James at 667 s."""


@pytest.mark.parametrize(
    "commands",
    [
        (COPY,),
        (EXPUNGE,),
        (COPY, replace(EXPUNGE, begins=COPY.ends + 30)),
        (EXPUNGE, replace(COPY, begins=EXPUNGE.ends + 30)),
        (LATE,),
        (OF_THE_REVIEW,),
        (replace(OF_THE_REVIEW, adds=-1, messages=50_000),),
    ],
)
@pytest.mark.parametrize("restarted_at", [None, 100.0, 160.0, 400.0])
def test_nothing_is_corrected_before_its_own_counter_is_written(
    commands: tuple[Command, ...], restarted_at: float | None
) -> None:
    run = Large(commands=commands)
    run.restart(restarted_at)
    run.go_on(commands[-1].ends + QUIET)
    assert run.tables.added == []
    assert run.off() == 0
    assert run.finding() is None


@pytest.mark.parametrize("error", [-3, 2, 900])
def test_what_was_wrong_before_is_exact_after_it(error: int) -> None:
    run = Large(commands=(COPY,), error=error)
    run.go_on(COPY.ends + QUIET)
    assert run.off() == 0


def test_an_error_that_a_long_command_hides_exactly_is_found_when_all_of_it_is_written() -> None:
    hidden = Command(0, 101, 1, answers_in=80)
    run = Large(commands=(hidden,), error=101)
    run.go_on(hidden.ends + QUIET)
    assert run.off() == 101, "nothing has told of it"
    run.go_on(hidden.ends + AN_HOUR + 2 * QUIET)
    assert run.off() == 0


@given(
    st.lists(
        st.builds(
            Command,
            begins=st.integers(0, 600),
            messages=st.integers(1, 40_000),
            rate=st.sampled_from((30, 150, 1000)),
            adds=st.sampled_from((-1, 1)),
            answers_in=st.integers(0, 5),
        )
        | st.builds(
            Command,
            begins=st.integers(0, 600),
            messages=st.integers(MANY + 1, 1_000),
            rate=st.sampled_from((1, 30)),
            adds=st.sampled_from((-1, 1)),
            answers_in=st.integers(5, 700),
        ),
        min_size=1,
        max_size=3,
    ),
    st.integers(-2_000, 2_000),
    st.none() | st.integers(5, 1_500),
)
@settings(max_examples=60, deadline=None)
def test_no_correction_makes_it_worse_and_it_becomes_exact(
    commands: list[Command], error: int, restarted_at: int | None
) -> None:
    run = Large(commands=tuple(commands), error=error, old=200_000)
    run.restart(restarted_at)
    run.go_on(max(each.ends for each in commands) + AN_HOUR + 2 * QUIET)
    assert run.off() == 0


# --- what may be under way ------------------------------------------------------------------------


BOX, OTHER = UUID(int=1), UUID(int=2)


@pytest.mark.parametrize(
    ("before", "since", "changes"),
    [
        ({}, {}, 0),
        ({BOX: MANY}, {}, 0),
        ({BOX: MANY + 1}, {}, MANY + 1),
        ({BOX: MANY}, {BOX: 1}, MANY + 1),
        ({BOX: MANY}, {OTHER: 7}, 7),
        ({BOX: MANY + 1, OTHER: 5}, {OTHER: 7}, MANY + 8),
    ],
)
def test_many_changes_that_came_out_before_may_be_under_way(
    before: dict[UUID, int], since: dict[UUID, int], changes: int
) -> None:
    assert under_way(before, since) == changes


def test_changes_are_kept_for_l_and_a_span_longer() -> None:
    now = [0.0]
    recent = RecentChanges(600.0, lambda: now[0])
    for now[0] in range(0, 100, 5):
        recent.take(NumberedChanges.of({BOX: 1}))
    assert recent.past([BOX, OTHER]) == {BOX: 20}
    assert recent.unknown_for() == 505
    now[0] = 600.0
    assert recent.past([BOX]) == {BOX: 20}
    assert recent.unknown_for() == 0
    now[0] = 705.0
    assert recent.past([BOX]) == {}


def test_where_counters_are_written_within_the_delay_nothing_is_kept() -> None:
    recent = RecentChanges(0.0, lambda: 0.0)
    recent.take(NumberedChanges.of({BOX: 1_000}))
    assert recent.past([BOX]) == {}
    assert recent.unknown_for() == 0
