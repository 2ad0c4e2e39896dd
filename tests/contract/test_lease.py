"""The lease's contract (fake and Cassandra), and the rules of one process's claim."""

import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest

from checkpoints.cassandra import CassandraLease, Store
from checkpoints.lease import Holder, Lease, LeaseStore
from deploy.embedded.wait import HANG_S
from reconcilers.words.errors import AlreadyRunning, Unreachable
from tests.contract.making import a_name
from tests.fakes.checkpoints.lease import MemoryLease

LONG = timedelta(seconds=60)
SHORT = timedelta(seconds=5)


@pytest.fixture
def leases(real: Store | None) -> LeaseStore:
    return MemoryLease() if real is None else CassandraLease(real)


@pytest.fixture
def name() -> str:
    return a_name("stream")


def a_holder(host: str = "mail-1") -> Holder:
    return Holder(uuid.uuid4().hex, host)


def eventually(condition: Callable[[], bool]) -> bool:
    """Ask again until it is so; False when it never is."""
    until = time.monotonic() + HANG_S
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


# --- the store ------------------------------------------------------------------------------------


def test_the_first_takes_it_and_the_second_is_told_who(leases: LeaseStore, name: str) -> None:
    first, second = a_holder("mail-1"), a_holder("mail-2")
    assert leases.held_by(name) is None
    assert leases.take(name, first, LONG) == first
    assert leases.take(name, second, LONG) == first
    assert leases.held_by(name) == first


def test_the_holder_takes_it_again(leases: LeaseStore, name: str) -> None:
    holder = a_holder()
    assert leases.take(name, holder, LONG) == holder
    assert leases.take(name, holder, LONG) == holder


def test_leaving_makes_room(leases: LeaseStore, name: str) -> None:
    first, second = a_holder(), a_holder()
    leases.take(name, first, LONG)
    leases.leave(name, second)
    assert leases.held_by(name) == first
    leases.leave(name, first)
    assert leases.held_by(name) is None
    leases.leave(name, first)
    assert leases.take(name, second, LONG) == second


def test_names_are_apart(leases: LeaseStore, name: str) -> None:
    first, second = a_holder(), a_holder()
    leases.take(name, first, LONG)
    assert leases.take(f"{name}-other", second, LONG) == second


def test_it_ends_by_itself(leases: LeaseStore, name: str) -> None:
    first, second = a_holder(), a_holder()
    leases.take(name, first, SHORT)
    assert leases.take(name, second, SHORT) == first
    assert eventually(lambda: leases.take(name, second, LONG) == second)
    assert leases.take(name, first, SHORT) == second


def test_renewal_outlives_the_first_term(leases: LeaseStore, name: str) -> None:
    first, other = a_holder(), a_holder()
    leases.take(name, first, SHORT)
    leases.take(name, first, LONG)
    leases.take(f"{name}-clock", other, SHORT)
    assert eventually(lambda: leases.held_by(f"{name}-clock") is None)
    assert leases.take(name, other, LONG) == first


def test_of_many_at_once_one_wins(leases: LeaseStore, name: str) -> None:
    holders = [a_holder() for _ in range(6)]
    answers: list[tuple[Holder, Holder]] = []
    threads = [
        threading.Thread(
            target=lambda holder=holder: answers.append((holder, leases.take(name, holder, LONG)))
        )
        for holder in holders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert len(answers) == 6
    assert {answer for _holder, answer in answers} == {leases.held_by(name)}
    assert sum(holder == answer for holder, answer in answers) == 1


# --- the rules ------------------------------------------------------------------------------------


class Clock:
    """Seconds that go on only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Unsteady(MemoryLease):
    """A store that can be made unreachable, and counts how often it was asked."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.reachable = True
        self.asked = 0

    def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
        self.asked += 1
        if not self.reachable:
            raise Unreachable("nobody answers")
        return super().take(name, holder, lasts)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def unsteady(clock: Clock) -> Unsteady:
    return Unsteady(clock)


@pytest.fixture
def lease(unsteady: Unsteady, clock: Clock) -> Lease:
    return Lease(unsteady, "stream", Holder("me", "mail-1"), LONG, clock)


def test_it_is_trusted_for_two_thirds_of_its_time(lease: Lease, clock: Clock) -> None:
    lease.acquire()
    clock.now += 39.9
    assert lease.holds()
    clock.now += 0.1
    assert not lease.holds()
    lease.acquire()
    assert lease.holds()


def test_it_is_renewed_twice_while_it_is_trusted(unsteady: Unsteady) -> None:
    holder = Holder("me", "mail-1")
    every = [Lease(unsteady, "stream", holder, lasts).renew_every for lasts in (LONG, 2 * LONG)]
    assert every == [timedelta(seconds=20), timedelta(seconds=40)]


def test_time_counts_from_when_the_renewal_was_sent(clock: Clock) -> None:
    class Slow(MemoryLease):
        def take(self, name: str, holder: Holder, lasts: timedelta) -> Holder:
            clock.now += 30
            return super().take(name, holder, lasts)

    lease = Lease(Slow(clock), "stream", Holder("me", "mail-1"), LONG, clock)
    lease.acquire()
    clock.now += 9.9
    assert lease.holds()
    clock.now += 0.1
    assert not lease.holds()


def test_one_who_slept_too_long_finds_out(lease: Lease, unsteady: Unsteady, clock: Clock) -> None:
    lease.acquire()
    clock.now += 61
    assert not lease.holds()
    unsteady.take("stream", Holder("other-id", "mail-2"), LONG)
    with pytest.raises(AlreadyRunning):
        lease.acquire()


def test_a_failed_renewal_leaves_what_time_is_left(
    lease: Lease, unsteady: Unsteady, clock: Clock
) -> None:
    lease.acquire()
    unsteady.reachable = False
    clock.now += 20
    with pytest.raises(Unreachable):
        lease.acquire()
    assert lease.holds()
    clock.now += 20
    assert not lease.holds()


def test_a_clean_stop_makes_room_at_once(lease: Lease, unsteady: Unsteady) -> None:
    lease.acquire()
    lease.release()
    assert not lease.holds()
    assert unsteady.held_by("stream") is None


def test_keeping_renews_through_failures_until_told_to_stop() -> None:
    store = Unsteady(time.monotonic)
    lease = Lease(store, "stream", Holder("me", "mail-1"), timedelta(seconds=0.3))
    lease.acquire()
    stop = threading.Event()
    keeper = threading.Thread(target=lease.keep, args=(stop,))
    keeper.start()
    try:
        assert eventually(lambda: store.asked >= 3)
        store.reachable = False
        assert eventually(lambda: not lease.holds())
        assert keeper.is_alive()
        store.reachable = True
        assert eventually(lease.holds)
    finally:
        stop.set()
        keeper.join(HANG_S)
    assert not keeper.is_alive()


def test_keeping_ends_when_another_has_it() -> None:
    store = MemoryLease()
    lease = Lease(store, "stream", Holder("me", "mail-1"), timedelta(seconds=0.3))
    lease.acquire()
    store.leave("stream", Holder("me", "mail-1"))
    store.take("stream", Holder("other", "mail-2"), LONG)
    keeper = threading.Thread(target=lease.keep, args=(threading.Event(),))
    keeper.start()
    keeper.join(HANG_S)
    assert not keeper.is_alive()
    assert not lease.holds()


def test_a_released_lease_is_not_taken_again_by_a_renewal_on_its_way() -> None:
    store = Unsteady(time.monotonic)
    lease = Lease(store, "stream", Holder("me", "mail-1"), timedelta(seconds=0.3))
    lease.acquire()
    lease.release()
    keeper = threading.Thread(target=lease.keep, args=(threading.Event(),))
    keeper.start()
    keeper.join(HANG_S)
    assert not keeper.is_alive()
    assert store.held_by("stream") is None
    assert store.asked == 1
