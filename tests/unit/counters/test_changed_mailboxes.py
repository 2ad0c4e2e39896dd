"""Mailboxes that find no room in memory are not forgotten: their marks are read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from uuid import UUID

import pytest

from checkpoints.clock import HOUR
from checkpoints.tallies import MARKS_KEPT_DAYS
from reconcilers.declared.tallies.mailbox_counters import MAILBOX_COUNTERS
from reconcilers.words.errors import Unreachable
from streaming.counters import pending_counter, screening_queue
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.changed_mailboxes import ChangedMailboxes
from streaming.counters.counter_row import CounterRows
from streaming.counters.screening import Screened
from streaming.counters.screening_queue import MARKS_AT_ONCE, MarkedHours, ScreeningQueue
from tests.builders.counters import BOB, FAMILIES, GATHER, Bench
from tests.builders.rows import DELAY, NOW, SECOND

NEVER = float("inf")
LATEST = 1_800 * SECOND


def boxes(number: int, first: int = 0) -> list[UUID]:
    return [UUID(int=first + each, version=1) for each in range(number)]


@dataclass
class Marks:
    """Marks by hour; ``read`` has the hours that were asked for."""

    of: dict[int, list[UUID]] = field(default_factory=dict)
    read: list[int] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)

    def marked_in(self, hour: int) -> Iterator[UUID]:
        self.read.append(hour)
        yield from self.of.get(hour, ())
        if self.fails:
            raise self.fails.pop()


def suspected(mailboxids: Sequence[UUID]) -> Screened:
    """All counters of these."""
    found = Screened()
    found.suspect(mailboxids, (each.name for family in FAMILIES for each in family.tallies))
    return found


@dataclass
class Scheduled:
    """What finds its way to the scheduler."""

    bench: Bench = field(default_factory=Bench)
    marks: Marks = field(default_factory=Marks)
    screened: list[UUID] = field(default_factory=list)
    queue: ScreeningQueue = field(init=False)
    changed: ChangedMailboxes = field(init=False)

    def __post_init__(self) -> None:
        hours = MarkedHours(self.marks.marked_in)
        bench, rules = self.bench, replace(self.bench.watch.rules, latest=LATEST)
        self.queue = ScreeningQueue(hours, bench.clock, rules)
        self.changed = ChangedMailboxes(
            bench.watch, bench.subjects, self.queue, self._screen, at_once=2
        )

    def _screen(self, mailboxids: Sequence[UUID]) -> Screened:
        """Every one of them may be wrong."""
        assert len(mailboxids) <= 2
        self.screened.extend(mailboxids)
        return suspected(mailboxids)

    def came(self, mailboxes: Sequence[UUID], since: int) -> None:
        self.queue.take(BatchSummary(dict.fromkeys(mailboxes, 1), since=since))

    def mailboxes(self) -> set[UUID]:
        """Those with a pending counter, after all had time."""
        self.changed.schedule(NEVER)
        return {each for _, each in self.bench.watch.pending if isinstance(each, UUID)}


@pytest.fixture
def scheduled(monkeypatch: pytest.MonkeyPatch) -> Scheduled:
    made = Scheduled()
    clock = SimpleNamespace(monotonic=lambda: made.bench.now / SECOND)
    monkeypatch.setattr(screening_queue, "time", clock)
    return made


def test_changes_are_gathered_for_a_window_before_they_are_screened(scheduled: Scheduled) -> None:
    scheduled.mailboxes()
    for _ in range(3):
        scheduled.came(boxes(3), since=NOW)
        scheduled.bench.now += GATHER // 3 - 1
        assert scheduled.mailboxes() == set()
    scheduled.bench.now += 3
    assert scheduled.mailboxes() == set(boxes(3))
    assert sorted(scheduled.screened) == boxes(3)


def test_what_agrees_is_let_go(scheduled: Scheduled) -> None:
    agree = Counter({MAILBOX_COUNTERS.name: 2})
    scheduled.changed.screen = lambda some: replace(suspected(some[:1]), agree=agree)
    scheduled.came(boxes(2), since=NOW)
    assert len(scheduled.mailboxes()) == 1
    assert scheduled.bench.counts == {"agrees": 2}
    assert len(scheduled.queue) == 0


def test_an_hours_marks_are_read_again_once_when_all_of_it_has_been_written(
    scheduled: Scheduled,
) -> None:
    """What was in flight at the first screening may have hidden an error of its own size."""
    hour = NOW // HOUR
    scheduled.changed.look_for_epoch()
    scheduled.mailboxes()
    scheduled.marks.of = {hour: boxes(3)}
    written = (hour + 1) * HOUR + LATEST + DELAY
    for at, read in ((written - 1, 0), (written, 1), (written + HOUR - 1, 1)):
        scheduled.bench.now = at
        scheduled.mailboxes()
        assert scheduled.screened == boxes(3) * read
    assert Counter(scheduled.marks.read)[hour] == 2


def test_at_the_start_all_kept_marks_are_read(scheduled: Scheduled) -> None:
    early, late = boxes(2), boxes(2, first=10)
    scheduled.marks.of = {NOW // HOUR - 24: early, NOW // HOUR: late}
    for _ in range(2):
        scheduled.changed.look_for_epoch()
    assert scheduled.mailboxes() == {*early, *late}
    hours = NOW // HOUR - 24 * MARKS_KEPT_DAYS, NOW // HOUR
    assert (scheduled.marks.read[0], scheduled.marks.read[-1]) == hours
    assert len(set(scheduled.marks.read)) == len(scheduled.marks.read)


def test_what_finds_no_room_is_read_from_its_marks(
    scheduled: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screening_queue, "MOST_KEPT", 5)
    few, many = boxes(4), boxes(6, first=10)
    scheduled.marks.of = {NOW // HOUR: [*few, *many]}
    scheduled.came(few, since=NOW)
    scheduled.came(many, since=NOW)
    assert len(scheduled.queue) == len(few)
    assert scheduled.mailboxes() == {*few, *many}


def test_marks_are_read_from_before_the_batch_whatever_the_clocks_say(
    scheduled: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's clock may differ by the delay."""
    monkeypatch.setattr(screening_queue, "MOST_KEPT", 0)
    hour = NOW // HOUR + 5
    scheduled.bench.now = (hour + 1) * HOUR - DELAY
    scheduled.came(boxes(1), since=hour * HOUR + DELAY - 1)
    scheduled.changed.schedule(NEVER)
    assert scheduled.marks.read[:3] == [hour - 1, hour, hour + 1]


def test_an_hour_that_is_being_read_is_read_again(
    scheduled: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mark that came after its place was passed is found by the second reading only."""
    monkeypatch.setattr(screening_queue, "MOST_KEPT", 0)
    first, late = boxes(MARKS_AT_ONCE), boxes(1, first=MARKS_AT_ONCE)
    scheduled.marks.of = {NOW // HOUR: [*first]}
    scheduled.came(first, since=NOW)
    assert scheduled.queue.hours.next() == first
    scheduled.marks.of = {NOW // HOUR: [*late, *first]}
    for _ in range(3):
        scheduled.came(late, since=NOW)
    assert scheduled.mailboxes() == {*late, *first}
    assert Counter(scheduled.marks.read)[NOW // HOUR] == 2


def test_a_mailbox_that_is_marked_in_many_hours_is_scheduled_once() -> None:
    hour = NOW // HOUR
    marks = Marks({each: boxes(3) for each in range(hour - 5, hour)})
    marks.of[hour] = [*boxes(3), *boxes(2, first=10)]
    hours = MarkedHours(marks.marked_in)
    hours.add((hour - 5) * HOUR, NOW)
    assert [hours.next(), hours.next(), hours.next()] == [boxes(3), boxes(2, first=10), []]
    assert marks.read == list(range(hour - 5, hour + 1))


def test_a_mailbox_that_is_marked_again_is_scheduled_again() -> None:
    """A new reading of marks is for changes that came meanwhile."""
    hour = NOW // HOUR
    hours = MarkedHours(Marks({each: boxes(1) for each in (hour - 1, hour)}).marked_in)
    hours.add(NOW - HOUR, NOW)
    assert hours.next() == boxes(1)
    hours.add(NOW, NOW)
    assert hours.next() == boxes(1)
    assert hours.next() == []
    hours.add(NOW, NOW)
    assert hours.next() == boxes(1)


def test_of_many_mailboxes_only_some_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screening_queue, "MOST_KEPT", 4)
    hour = NOW // HOUR
    marks = Marks({hour - 1: boxes(3), hour: boxes(3, first=10)})
    hours = MarkedHours(marks.marked_in)
    hours.add(NOW - HOUR, NOW)
    assert hours.next() == boxes(3)
    assert hours.next() == boxes(3, first=10)
    assert hours._returned == set(boxes(3, first=10))


def test_after_an_error_the_hour_begins_again(scheduled: Scheduled) -> None:
    scheduled.marks.of = {NOW // HOUR - 1: boxes(3), NOW // HOUR: boxes(3, first=10)}
    scheduled.marks.fails = [Unreachable("no host answered")]
    scheduled.changed.look_for_epoch()
    with pytest.raises(Unreachable):
        scheduled.changed.schedule(NEVER)
    assert scheduled.mailboxes() == {*boxes(3), *boxes(3, first=10)}


def few_pending(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(pending_counter, "MOST_PENDING", number)


def test_what_there_was_no_time_for_stays(scheduled: Scheduled) -> None:
    scheduled.changed.screen = lambda some: Screened(left=set(some))
    scheduled.came(boxes(2), since=NOW)
    scheduled.changed.schedule(NEVER)
    assert len(scheduled.queue) == 2


def test_while_too_many_counters_are_pending_mailboxes_wait(
    scheduled: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_pending(monkeypatch, 4)
    scheduled.marks.of = {NOW // HOUR: boxes(20)}
    scheduled.changed.look_for_epoch()
    assert len(scheduled.mailboxes()) == 4
    done = set(boxes(20)) & scheduled.mailboxes()
    for pending in list(scheduled.bench.watch.pending.values()):
        scheduled.bench.watch._drop(pending)
    assert len(scheduled.mailboxes() - done) == 4


def test_a_tally_that_gets_nowhere_holds_up_no_other(
    scheduled: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As quotas that may not be read: each mailbox is of another user, and only theirs go on."""
    owners = SimpleNamespace(root_of=lambda mailboxid: replace(BOB, user=str(mailboxid)))
    scheduled.changed.counters = CounterRows(scheduled.bench.families, owners)  # type: ignore[arg-type]
    few_pending(monkeypatch, 4)
    scheduled.marks.of = {NOW // HOUR: boxes(20)}
    scheduled.changed.look_for_epoch()
    watch, seen = scheduled.bench.watch, set[UUID]()
    moving = MAILBOX_COUNTERS.name
    for _ in range(20):
        scheduled.changed.schedule(NEVER)
        done = [each for each in watch.pending.values() if each.counter.tally.name == moving]
        seen |= {each.counter.key for each in done if isinstance(each.counter.key, UUID)}
        for each in done:
            watch._drop(each)
    assert len(seen) == 20


def test_a_clock_that_was_set_back_hides_no_mark(
    scheduled: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screening_queue, "MOST_KEPT", 0)
    scheduled.marks.of = {NOW // HOUR: boxes(3)}
    scheduled.came(boxes(3), since=NOW + 2 * HOUR)
    assert scheduled.mailboxes() == set(boxes(3))


def test_a_mailbox_whose_owner_cannot_be_read_stays(scheduled: Scheduled) -> None:
    (mailbox,) = boxes(1)
    scheduled.bench.tables.give(mailbox, BOB)
    scheduled.bench.tables.fails["owner"] = Unreachable("no host answered")
    scheduled.came([mailbox], since=NOW)
    with pytest.raises(Unreachable):
        scheduled.changed.schedule(NEVER)
    assert scheduled.mailboxes() == {mailbox}
