"""The thread of the tallies: fed by batches, it works through what is due, whatever fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Empty
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock, patch
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.clock import HOUR
from reconcilers.limits.breakers import Breaker
from reconcilers.rows.decision import retried
from reconcilers.rows.finding import State
from reconcilers.words.errors import ReadFailed, ReconcilerError, Refused, Unreachable
from streaming.counters import changed_mailboxes, screening_queue
from streaming.counters import loop as loop_module
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.changed_mailboxes import ChangedMailboxes
from streaming.counters.loop import PAUSE, RECALL_EVERY, REFUSED_FOR, CounterLoop
from streaming.counters.progress import CounterProgress
from streaming.counters.screening_queue import MarkedHours, ScreeningQueue
from streaming.monitoring.metrics import Metrics
from tests.builders.counters import (
    A_NODE_IS_DOWN,
    AGAIN,
    BOB,
    GATHER,
    OF_BOB,
    OTHER,
    Bench,
    K,
    L,
)
from tests.builders.failing import unreachable
from tests.builders.rows import DELAY, MAILBOX, NOW


@dataclass
class Inbox:
    """A queue on the bench's clock."""

    bench: Bench
    waiting: list[BatchSummary] = field(default_factory=list)

    def put(self, came: BatchSummary) -> None:
        self.waiting.append(came)

    def get(self, timeout: float) -> BatchSummary:
        if not self.waiting:
            self.bench.now += round(timeout * 1e6)
        return self.get_nowait()

    def get_nowait(self) -> BatchSummary:
        if not self.waiting:
            raise Empty
        return self.waiting.pop(0)


class Stop(Event):
    """Ends a run after so many seconds of the bench's clock."""

    def __init__(self, bench: Bench, seconds: float) -> None:
        super().__init__()
        self.bench, self.at = bench, bench.now + round(seconds * 1e6)

    def is_set(self) -> bool:
        return self.bench.now >= self.at

    def wait(self, timeout: float | None = None) -> bool:
        self.bench.now += round((timeout or 0) * 1e6)
        return self.is_set()


@dataclass
class Thread:
    """The loop of a bench, its batches told by hand."""

    bench: Bench
    marked: list[UUID] = field(default_factory=list)
    swept_at: int | None = None
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    loop: CounterLoop = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new process."""
        self.bench.begin()
        bench = self.bench
        self.loop = CounterLoop(
            scheduler=bench.watch,
            changed=ChangedMailboxes(
                bench.watch,
                bench.subjects,
                ScreeningQueue(MarkedHours(self.marked_in), bench.clock, bench.watch.rules),
                bench.screening().of,
                at_once=10,
                epoch=lambda: self.swept_at,
            ),
            counters=bench.subjects,
            findings=bench.findings,
            asked=(bench.correcting.trouble, bench.correcting.breaker.why),
            progress=CounterProgress(self.metrics),
            _queue=Inbox(self.bench),  # type: ignore[arg-type]
        )

    def marked_in(self, hour: int) -> Iterator[UUID]:
        """All were marked at the bench's first hour."""
        return iter(self.marked if hour == NOW // HOUR else ())

    def live(self, seconds: float) -> None:
        self.loop.run(Stop(self.bench, seconds))

    def change(self, *mailboxes: UUID) -> None:
        """A batch tells of a change in each."""
        changes = dict.fromkeys(mailboxes, 1)
        self.loop.take(BatchSummary(changes, self.bench.canaries.sing()))

    def corrects(self) -> None:
        """Time for a correction; batches come all the while."""
        for _ in range(8 * K):
            self.live((DELAY + 2 * L) / 4e6)
            self.loop.take(BatchSummary(proven=self.bench.canaries.sing()))

    def waiting(self) -> float | None:
        return self.metrics.registry.get_sample_value("reconciler_tallies_waiting")


@pytest.fixture
def thread() -> Iterator[Thread]:
    bench = Bench()
    clock = SimpleNamespace(monotonic=lambda: bench.now / 1e6)
    with (
        patch.object(loop_module, "time", clock),
        patch.object(changed_mailboxes, "time", clock),
        patch.object(screening_queue, "time", clock),
    ):
        yield Thread(bench)


GATHERED = 2 * GATHER / 1e6


def test_a_change_leads_to_a_glance_at_the_mailbox_and_at_its_users_quota(thread: Thread) -> None:
    thread.change(MAILBOX)
    thread.live(GATHERED)
    assert thread.bench.counts == {"agrees": 2}
    assert thread.waiting() == 0


def test_what_is_wrong_is_corrected_and_verified(thread: Thread) -> None:
    thread.bench.set_counter(count=3, unseen=1)
    thread.change(MAILBOX)
    thread.corrects()
    assert thread.bench.counter() == (2, 1)
    assert thread.bench.states() == [State.INTENDED, State.VERIFIED]


def test_what_a_sweep_has_marked_is_looked_at_when_it_has_ended(thread: Thread) -> None:
    thread.live(RECALL_EVERY)
    thread.bench.set_counter(count=3, unseen=1)
    thread.marked = [MAILBOX]
    thread.corrects()
    assert thread.bench.counter() == (3, 1)
    thread.swept_at = 5
    thread.corrects()
    assert thread.bench.counter() == (2, 1)


def test_what_was_marked_before_a_restart_is_looked_at(thread: Thread) -> None:
    thread.bench.set_counter(count=3, unseen=1)
    thread.marked = [MAILBOX]
    thread.corrects()
    assert thread.bench.counter() == (2, 1)


def test_a_finding_of_before_a_restart_goes_on(thread: Thread) -> None:
    thread.bench.with_wrong_counter()
    thread.bench.look(K)
    thread.bench.set_counter(count=3, unseen=1)
    thread.begin()
    thread.corrects()
    assert thread.bench.counter() == (2, 1)
    assert thread.bench.states() == [State.INTENDED, State.INTENDED, State.VERIFIED]


def test_a_finding_that_waits_is_left_alone_until_its_next_look(thread: Thread) -> None:
    thread.bench.set_counter(count=3, unseen=1)
    thread.bench.trouble = A_NODE_IS_DOWN
    thread.change(MAILBOX)
    thread.corrects()
    thread.bench.trouble = None
    glances = thread.bench.counts.total()
    thread.live(AGAIN / 3e6)
    assert thread.bench.counts.total() == glances
    thread.live(AGAIN / 1e6)
    thread.corrects()
    assert thread.bench.counter() == (2, 1)


def test_a_breaker_that_was_closed_is_seen_though_nothing_is_wrong_any_more(thread: Thread) -> None:
    breaker, journal = thread.bench.correcting.breaker, thread.bench.journal
    journal.open_breaker(Breaker.CORRECTIONS, "as it was", thread.bench.now)
    breaker.breakers.recall()
    assert breaker.breakers.reason(Breaker.CORRECTIONS) is not None
    journal.close_breakers(thread.bench.now)
    thread.live(3 * RECALL_EVERY)
    assert breaker.breakers.reason(Breaker.CORRECTIONS) is None


def test_a_thread_that_waits_for_servers_is_seen_to_live(thread: Thread) -> None:
    thread.loop.changed.epoch = unreachable
    with patch.object(thread.metrics.tally_turn, "set_to_current_time") as lives:
        thread.live(10 * PAUSE)
    assert lives.call_count > 9


def test_what_an_operator_retries_is_looked_at_soon(thread: Thread) -> None:
    thread.bench.set_counter(count=3, unseen=1)
    thread.bench.trouble = A_NODE_IS_DOWN
    thread.change(MAILBOX)
    thread.corrects()
    thread.bench.trouble = None
    thread.bench.journal.put(retried(thread.bench.open_finding(), thread.bench.now))
    thread.live(2 * RECALL_EVERY)
    assert thread.waiting() == 1
    thread.corrects()
    assert thread.bench.counter() == (2, 1)


def test_open_findings_are_shown_with_those_of_tables(thread: Thread) -> None:
    thread.bench.set_counter(count=3, unseen=1)
    thread.bench.tables.fails["add"] = Refused("no MODIFY permission")
    thread.change(MAILBOX)
    thread.corrects()
    thread.live(2 * RECALL_EVERY)
    labels = {"projection": "mailbox_counters", "kind": "table_refuses", "state": "reported"}
    assert thread.metrics.registry.get_sample_value("reconciler_open_findings", labels) == 1


# --- failures -------------------------------------------------------------------------------------


def test_while_servers_do_not_answer_it_waits_and_goes_on(
    thread: Thread, caplog: pytest.LogCaptureFixture
) -> None:
    thread.bench.set_counter(count=3, unseen=1)
    thread.bench.tables.fails["stored"] = Unreachable("no host answered")
    thread.change(MAILBOX)
    with caplog.at_level(logging.WARNING, "reconciler"):
        thread.corrects()
    assert "tallies wait: no host answered" in caplog.messages
    assert thread.bench.counter() == (2, 1)


@pytest.mark.parametrize("failure", [Unreachable("no host"), Refused("no SELECT permission")])
def test_a_mailbox_whose_owner_cannot_be_read_is_not_forgotten(
    thread: Thread, failure: ReconcilerError
) -> None:
    thread.bench.tables.fails["owner"] = failure
    thread.change(MAILBOX)
    thread.live(GATHERED + 2 * PAUSE + REFUSED_FOR)
    assert thread.bench.counts == {"agrees": 2}


def test_while_owners_may_not_be_read_that_is_said_once_a_minute(
    thread: Thread, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Mock(side_effect=Refused("no SELECT permission"))
    monkeypatch.setattr(thread.bench.tables, "owner", refused)
    thread.change(MAILBOX)
    with caplog.at_level(logging.WARNING, "reconciler"):
        thread.live(3 * REFUSED_FOR - 2 * PAUSE)
    said = [each for each in caplog.messages if "whose mailboxes are is not known" in each]
    assert len(said) == 3


@pytest.mark.parametrize("error", [Refused, ReadFailed])
def test_a_counter_that_may_not_be_read_holds_up_no_other(
    thread: Thread,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    stored = thread.bench.tables.stored

    def refusing(tally: object, key: object) -> object:
        if key != MAILBOX:
            raise error("no SELECT permission")
        return stored(tally, key)  # type: ignore[arg-type]

    monkeypatch.setattr(thread.bench.tables, "stored", refusing)
    for each in (OTHER, *(UUID(int=number, version=1) for number in range(100))):
        thread.bench.tables.give(each, BOB)
        thread.change(each)
    thread.change(MAILBOX)
    began = thread.bench.now
    with caplog.at_level(logging.WARNING, "reconciler"):
        while not thread.bench.counts:
            thread.live(1)
    assert thread.bench.now < began + GATHER + 5_000_000
    assert "quota root #private&bob is not looked at: no SELECT permission" in caplog.messages
    thread.live(REFUSED_FOR / 2)
    assert sum(str(OF_BOB) in each for each in caplog.messages) == 1


def test_marks_that_cannot_be_read_at_the_start_are_read_later(thread: Thread) -> None:
    fails = [Unreachable("no host answered")]

    def marked(hour: int) -> Iterator[UUID]:
        if fails:
            raise fails.pop()
        return thread.marked_in(hour)

    thread.marked = [MAILBOX]
    thread.loop.changed.queue.hours.marked = marked
    thread.live(GATHERED + 2 * PAUSE)
    assert thread.bench.counts == {"agrees": 2}


def test_while_marks_cannot_be_read_what_is_due_is_corrected(thread: Thread) -> None:
    thread.bench.set_counter(count=3, unseen=1)
    thread.change(MAILBOX)
    thread.live(GATHERED)
    thread.loop.changed.queue.hours.marked = unreachable
    thread.swept_at = 5
    thread.corrects()
    assert thread.bench.counter() == (2, 1)


def test_a_batch_that_ends_while_a_look_is_made_is_counted(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread.bench.set_counter(count=3, unseen=1)
    stored = thread.bench.tables.stored

    def meanwhile(tally: object, key: object) -> object:
        thread.change(MAILBOX)
        return stored(tally, key)  # type: ignore[arg-type]

    thread.change(MAILBOX)
    with monkeypatch.context() as busy:
        busy.setattr(thread.bench.tables, "stored", meanwhile)
        thread.corrects()
    assert thread.bench.tables.added == []
    assert thread.bench.counts["unsure"] > 0


def test_it_ends_when_it_is_told_to(thread: Thread) -> None:
    stop = Event()
    stop.set()
    thread.loop.run(stop)
    assert thread.bench.counts == {}
