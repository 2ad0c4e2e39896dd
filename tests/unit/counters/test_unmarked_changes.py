"""Chunks that nobody has marked: counted anew after another width, and what a difference proves."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import pytest

from checkpoints.losses import Loss, end_memory
from reconcilers.declared.tally import Sum, Sums
from reconcilers.words.model import Micros
from streaming.counters.unmarked_changes import MOST_DOUBTS, LossRules, WatchedTallies
from tests.builders.counters import Bench, CanariesByHand, message
from tests.builders.failing import unreachable
from tests.builders.rows import DELAY, MAILBOX, NOW
from tests.fakes.checkpoints.losses import MemoryLosses
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.checkpoints.tallies import MemoryTallies

SLACK = DELAY // 2
EXPIRIES = 4 * DELAY
HOUR: Micros = 3_600_000_000
ONE: Sums = {Sum.COUNT: 1, Sum.UNSEEN: 1, Sum.SIZE: 100}
TWO: Sums = {Sum.COUNT: 2, Sum.UNSEEN: 1, Sum.SIZE: 200}


@dataclass
class Desk:
    """A mailbox that was counted whole an hour ago, since memory has begun."""

    now: Micros = NOW
    kept: MemoryTallies = field(default_factory=MemoryTallies)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    canaries: CanariesByHand = field(default_factory=CanariesByHand)
    losses: MemoryLosses = field(default_factory=MemoryLosses)
    tallies: WatchedTallies = field(init=False)

    def __post_init__(self) -> None:
        self.lineage.watch_from(self.now - HOUR)
        self.tallies = WatchedTallies(
            self.kept,
            self.lineage,
            self.canaries,
            lambda: self.now,
            LossRules(SLACK, EXPIRIES),
            lambda why: end_memory(self.lineage, self.losses.record, Loss(self.now, why)),
        )
        self.tallies.counted_whole({MAILBOX: {0: ONE, 3: ONE}}, self.now - HOUR)

    def count(self, **chunks: Sums) -> None:
        """Everything is counted: chunk 3 as before, chunks 0 and 5 as told."""
        told = {int(name.removeprefix("chunk")): sums for name, sums in chunks.items()}
        self.tallies.counted_whole({MAILBOX: {3: ONE, **told}}, self.now)

    def hear(self) -> None:
        """Some time later all that was written until now has come out."""
        self.tallies.heard({})
        self.tallies.heard(self.canaries.sing())

    def wait(self) -> None:
        """Until what expires has its marks."""
        self.now += EXPIRIES
        self.hear()

    def ended(self) -> bool:
        """Whether memory has ended, and was said to."""
        lost = bool(self.losses.since(0))
        assert lost == (self.lineage.watching() is None)
        return lost


@pytest.fixture
def desk() -> Desk:
    return Desk()


# --- a proof --------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [{"chunk0": TWO}, {}, {"chunk0": ONE, "chunk5": ONE}])
def test_a_chunk_that_differs_and_stays_unmarked_proves_a_loss_and_ends_memory(
    desk: Desk, chunks: dict[str, Sums], caplog: pytest.LogCaptureFixture
) -> None:
    """It holds more, nothing any more, or was empty before."""
    desk.count(**chunks)
    assert not desk.ended()
    desk.wait()
    assert desk.ended()
    (told,) = (each.getMessage() for each in caplog.records if each.levelno == logging.ERROR)
    assert "events were lost: chunk" in told


def test_a_count_that_finds_what_was_known_proves_nothing(desk: Desk) -> None:
    desk.count(chunk0=ONE)
    desk.wait()
    assert not desk.ended()


def test_a_busy_mailbox_never_proves_a_loss(desk: Desk) -> None:
    """What comes during a count is listed, and its event comes out a delay later."""
    for number in range(1, 20):
        desk.count(chunk0={**ONE, Sum.COUNT: number})
        desk.now += DELAY
        desk.kept.mark({MAILBOX: [0]}, desk.now)
        desk.now += SLACK + 1
        desk.wait()
    assert not desk.ended()


def test_it_is_not_decided_before_all_before_the_counts_end_has_come_out(desk: Desk) -> None:
    desk.count(chunk0=TWO)
    desk.now += EXPIRIES + HOUR
    for _ in range(5):
        desk.tallies.heard({})
        desk.tallies.heard({"node": desk.canaries.number})
    desk.kept.mark({MAILBOX: [0]}, desk.now)
    desk.hear()
    assert not desk.ended()


def test_what_expires_has_time_to_be_marked(desk: Desk) -> None:
    """No event tells of an expiry: the look after it marks the chunk."""
    desk.count(chunk0=TWO)
    desk.hear()
    desk.now += EXPIRIES - 1
    desk.hear()
    desk.kept.mark({MAILBOX: [0]}, desk.now)
    desk.wait()
    assert not desk.ended()


def test_what_was_lost_before_memory_began_does_not_end_it_again(desk: Desk) -> None:
    desk.lineage.watch_from(desk.now - HOUR + 1)
    desk.count(chunk0=TWO)
    desk.wait()
    assert not desk.ended()


@pytest.mark.parametrize(("earlier", "ends"), [(0, False), (1, True)], ids=["is one", "is none"])
def test_a_mark_that_clocks_may_have_put_before_the_count_is_a_mark(
    desk: Desk, earlier: int, ends: bool
) -> None:
    desk.kept.mark({MAILBOX: [0]}, desk.now - HOUR - SLACK - earlier)
    desk.count(chunk0=TWO)
    desk.wait()
    assert desk.ended() is ends


def test_what_was_counted_after_a_whole_count_began_may_be_newer_and_proves_nothing(
    desk: Desk,
) -> None:
    """A whole count of a large mailbox takes many turns; a marked chunk is counted in between."""
    began = desk.now
    desk.now += HOUR
    desk.kept.mark({MAILBOX: [0]}, desk.now)
    desk.now += SLACK + 1
    desk.kept.counted({MAILBOX: {0: TWO}}, desk.now)
    desk.tallies.counted_whole({MAILBOX: {0: ONE, 3: ONE}}, began)
    desk.wait()
    assert not desk.ended()


def test_where_nodes_have_changed_since_nothing_is_proven(desk: Desk) -> None:
    desk.count(chunk0=TWO)
    desk.now += EXPIRIES
    desk.tallies.heard({})
    desk.canaries.nodes = "two nodes"
    desk.tallies.heard(desk.canaries.sing())
    assert not desk.ended()


def test_without_canaries_nothing_is_proven(desk: Desk) -> None:
    desk.count(chunk0=TWO)
    desk.canaries.mute = True
    desk.wait()
    desk.canaries.mute = False
    desk.wait()
    assert not desk.ended()


@pytest.mark.parametrize(("store", "call"), [("kept", "of_mailbox"), ("losses", "record")])
def test_what_cannot_be_asked_or_recorded_is_proven_again(
    desk: Desk, store: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loss is recorded first: while lineage watches, it is proven again."""
    desk.count(chunk0=TWO)
    with monkeypatch.context() as broken:
        broken.setattr(getattr(desk, store), call, unreachable)
        desk.wait()
        assert not desk.ended()
    desk.wait()
    assert desk.ended()


def test_doubts_do_not_grow_without_end(desk: Desk) -> None:
    desk.tallies.counted_whole({MAILBOX: dict.fromkeys(range(10, 3 * MOST_DOUBTS), ONE)}, desk.now)
    assert len(desk.tallies._doubts) == MOST_DOUBTS


# --- another width --------------------------------------------------------------------------------


def test_what_was_counted_while_another_width_was_marked_is_counted_anew(desk: Desk) -> None:
    desk.tallies.since = desk.now
    assert not desk.tallies.of_mailbox(MAILBOX).whole
    desk.count(chunk0=TWO)
    assert desk.tallies.of_mailbox(MAILBOX).whole
    desk.wait()
    assert not desk.ended()


def test_of_the_same_width_it_is_believed(desk: Desk) -> None:
    desk.kept.marked_in_this_width_since(desk.now - HOUR)
    desk.tallies.begin()
    assert desk.tallies.since == desk.now - HOUR
    assert desk.tallies.of_mailbox(MAILBOX).whole


def test_a_whole_count_of_the_product_tells_of_a_lost_event(desk: Desk) -> None:
    bench = Bench()
    counting = bench.counting()
    desk.kept = bench.tallies
    bench.tallies.counted_whole({MAILBOX: {0: TWO}}, bench.now - HOUR)
    desk.tallies.kept = bench.tallies
    bench.tables.hold(MAILBOX, message(1))
    object.__setattr__(counting, "watched", desk.tallies)
    counting.anew([MAILBOX])
    desk.wait()
    assert desk.ended()
