"""The rules of one process's claim, on a clock and a stop of the test's own."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import timedelta
from threading import Event
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints import lease as lease_module
from checkpoints.lease import Holder, Lease, time_awake_or_asleep
from reconcilers.words.errors import AlreadyRunning, ReconcilerError, Refused, Unreachable
from tests.fakes.checkpoints.lease import MemoryLease

MINUTE = timedelta(seconds=60)
ME, OTHER = Holder("me", "mail-1"), Holder("other", "mail-2")


class Store(MemoryLease):
    """Time stands still; nobody answers while ``silent``."""

    silent = False
    trouble: ReconcilerError = Unreachable("nobody answers")

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)

    def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
        if self.silent:
            raise self.trouble
        return super().take(name, holder, lasts)


class Stop(Event):
    """Comes after so many pauses, in each of which the store changes its mind."""

    def __init__(self, store: Store, pauses: int) -> None:
        super().__init__()
        self.store, self.left, self.paused = store, pauses, list[float | None]()

    def wait(self, timeout: float | None = None) -> bool:
        self.paused.append(timeout)
        self.left -= 1
        self.store.silent = len(self.paused) in (2, 3)
        return self.left == 0


def lease_of(store: Store) -> Lease:
    return Lease(store, "stream", ME, MINUTE, lambda: 0.0)


def test_it_is_not_held_before_it_was_taken_nor_after_it_was_lost_whatever_the_clock_shows() -> (
    None
):
    store = Store()
    lease = lease_of(store)
    assert not lease.holds()
    lease.acquire()
    assert lease.holds()
    store.leave("stream", ME)
    store.take("stream", OTHER, MINUTE)
    with pytest.raises(AlreadyRunning, match=r"other on host mail-2\. Stop it, or wait 60 s after"):
        lease.acquire()
    assert not lease.holds()


@pytest.mark.parametrize(
    "trouble", [Unreachable("nobody answers"), Refused("permissions could not be read")]
)
def test_a_renewal_that_failed_is_tried_again_five_times_as_soon(trouble: ReconcilerError) -> None:
    """A refusal ends no thread, either."""
    store = Store()
    store.trouble = trouble
    lease = lease_of(store)
    lease.acquire()
    stop = Stop(store, pauses=6)
    lease.keep(stop)
    assert stop.paused == [20.0, 20.0, 4.0, 4.0, 20.0, 20.0]
    assert lease.holds()


def test_a_process_that_hangs_leaves_it_to_another_and_takes_it_again_if_it_can(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store()
    lease = lease_of(store)
    lease.acquire()
    store.leave("stream", ME)  # as if its time was over
    lease.keep(stop := Stop(store, pauses=3), lambda: "thread start hangs")
    assert store.held_by("stream") is None
    assert caplog.messages == ["the lease stream is not renewed: thread start hangs"] * 2
    assert stop.paused == [20.0] * 3
    lease.keep(Stop(store, pauses=2), lambda: None)
    assert store.held_by("stream") == ME


def test_a_lease_that_was_released_and_taken_again_is_kept() -> None:
    store = Store()
    lease = lease_of(store)
    lease.acquire()
    lease.release()
    released = Stop(store, pauses=3)
    lease.keep(released)
    assert released.paused == [20.0]
    lease.acquire()
    taken = Stop(store, pauses=2)
    lease.keep(taken)
    assert taken.paused == [20.0, 20.0]


@pytest.mark.parametrize(
    ("clocks", "seconds"),
    [
        ({"CLOCK_BOOTTIME": 7, "clock_gettime": {7: 70.5}.get, "monotonic": lambda: 1.5}, 70.5),
        ({"monotonic": lambda: 1.5}, 1.5),
    ],
    ids=["counts sleep", "cannot"],
)
def test_time_goes_on_while_the_machine_sleeps_where_it_can_tell(
    monkeypatch: pytest.MonkeyPatch, clocks: dict[str, object], seconds: float
) -> None:
    monkeypatch.setattr(lease_module, "time", SimpleNamespace(**clocks))
    assert time_awake_or_asleep() == seconds


def test_what_is_renewed_lasts_from_the_renewal_on() -> None:
    now = 0.0
    store = MemoryLease(lambda: now)
    store.take("stream", ME, MINUTE)
    now = 59.0
    assert store.take("stream", ME, MINUTE) == ME
    now = 118.0
    assert store.take("stream", OTHER, MINUTE) == ME
    now = 119.0
    assert store.take("stream", OTHER, MINUTE) == OTHER


# --- clocks of servers that differ ----------------------------------------------------------------

APART = timedelta(seconds=45)
"""D: clocks of two nodes differ by less while repairs go on, for each is within D/2 of ours."""


class SkewedNodes:
    """A lease as Cassandra keeps it: the node that is asked judges by its own clock, in seconds."""

    def __init__(self, ahead: list[float]) -> None:
        self.ahead, self.now, self.node = ahead, 0.0, 0
        self._held: tuple[Holder, int] | None = None

    def _second(self) -> int:
        return math.floor(self.now + self.ahead[self.node])

    def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
        other = self.held_by(name)
        if other is not None and other != holder:
            return other
        self._held = holder, self._second() + math.ceil(lasts.total_seconds())
        return holder

    def leave(self, name: str, holder: Holder) -> None:
        self._held = None

    def held_by(self, name: str) -> Holder | None:
        return self._held[0] if self._held is not None and self._second() < self._held[1] else None


def claims(store: SkewedNodes, skew: timedelta) -> list[Lease]:
    return [Lease(store, "stream", each, MINUTE, lambda: store.now, skew) for each in (ME, OTHER)]


def ask(lease: Lease) -> None:
    with suppress(AlreadyRunning):
        lease.acquire()


def test_a_node_whose_clock_is_ahead_gives_it_to_nobody_else_while_it_is_trusted() -> None:
    """The row that one node has written is dead 45 s early at another."""
    store = SkewedNodes([0.0, 44.9])
    mine, others = claims(store, APART)
    ask(mine)
    store.now, store.node = 16.0, 1
    ask(others)
    assert mine.holds()
    assert not others.holds()


AHEAD = st.sampled_from([-22.4, 22.4]) | st.floats(-22.4, 22.4)
LATER = st.sampled_from([0.0, 0.9, 16.0, 20.0, 39.9]) | st.floats(0, 30)


@given(
    ahead=st.lists(AHEAD, min_size=2, max_size=3),
    steps=st.lists(
        st.tuples(st.sampled_from([0, 1]), st.integers(0, 2), LATER), min_size=2, max_size=12
    ),
)
def test_two_never_hold_it_whatever_node_they_ask(
    ahead: list[float], steps: list[tuple[int, int, float]]
) -> None:
    store = SkewedNodes(ahead)
    both = claims(store, APART)
    for who, node, later in steps:
        store.now += later
        store.node = node % len(ahead)
        ask(both[who])
        assert not all(each.holds() for each in both)


def test_it_lasts_as_long_as_it_is_trusted_and_clocks_may_differ() -> None:
    asked: list[timedelta] = []

    class Asked(Store):
        def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
            asked.append(lasts)
            return super().take(name, holder, lasts)

    for skew in (0, 3, 45):
        Lease(Asked(), "stream", ME, MINUTE, lambda: 0.0, timedelta(seconds=skew)).acquire()
    assert [each.total_seconds() for each in asked] == [60, 60, 86]
