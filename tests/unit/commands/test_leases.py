"""The lease is held as long as a stream may still write."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from datetime import timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from checkpoints.lease import Holder, Lease
from reconcilers.words.errors import AlreadyRunning, EndedItself, Unreachable
from streaming.commands.running import leases as holding
from streaming.commands.running.threads import Threads
from streaming.monitoring.health import HUNG_AFTER, SLOW_HUNG_AFTER
from streaming.settings import Mode
from tests.fakes.checkpoints.lease import MemoryLease
from tests.stack.streams import until


def test_it_is_renewed_while_the_stream_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    until: list[Event] = []
    begun, now = Event(), [0.0]
    why_dead: list[Callable[[], str | None]] = []

    def keep(_lease: Lease, over: Event, dead: Callable[[], str | None]) -> None:
        until.append(over)
        why_dead.append(dead)
        begun.set()
        over.wait(60)

    monkeypatch.setattr(Lease, "keep", keep)
    monkeypatch.setattr(holding, "CassandraLease", lambda store: store)
    names: Any = SimpleNamespace(lease="ours", mode=Mode.REPAIR)
    store, stop = MemoryLease(), Event()
    threads = Threads(stop, clock=lambda: now[0])
    with holding.Holding(names, store, threads, timedelta(0)):  # type: ignore[arg-type]
        assert begun.wait(60)
        assert why_dead[0]() is None
        now[0] += SLOW_HUNG_AFTER + 1
        assert why_dead[0]() == "thread start hangs: no turn for 901 s"
        threads.health.watched("supervising", stop).wait(0)
        now[0] += HUNG_AFTER
        stop.set()  # SIGTERM: the batch that runs has not ended yet
        assert why_dead[0]() is None
        now[0] += SLOW_HUNG_AFTER - HUNG_AFTER
        assert why_dead[0]() is None
        now[0] += 1
        assert why_dead[0]() == "thread supervising hangs: no turn for 901 s"
        assert not until[0].is_set()
        assert store.held_by("ours") is not None
    assert until[0].is_set()
    assert store.held_by("ours") is None
    threads.check()


@pytest.mark.parametrize("ends", [None, EndedItself("the nodes have moved")])
def test_a_lease_that_cannot_be_released_does_not_cover_why_the_process_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, ends: Exception | None
) -> None:
    class Away(MemoryLease):
        def leave(self, name: str, holder: Holder) -> None:
            raise Unreachable("no host answered")

    monkeypatch.setattr(holding, "CassandraLease", lambda store: store)
    names: Any = SimpleNamespace(lease="ours", mode=Mode.REPAIR)
    skew = timedelta(0)
    for held in (
        holding.Holding(names, Away(), Threads(Event()), skew),  # type: ignore[arg-type]
        holding.Alone(Away(), "ours", skew),  # type: ignore[arg-type]
    ):
        with nullcontext() if ends is None else pytest.raises(EndedItself), held:
            if ends is not None:
                raise ends
        assert caplog.messages.pop() == (
            "the lease was not released, and will expire: no host answered"
        )


def test_a_lease_that_another_has_taken_meanwhile_is_told_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[Event] = []

    def keep(_lease: Lease, over: Event) -> None:
        ended.append(over)
        raise AlreadyRunning("another sweep has it")

    monkeypatch.setattr(Lease, "keep", keep)
    monkeypatch.setattr(holding, "CassandraLease", lambda store: store)
    alone = holding.Alone(MemoryLease(), "ours", timedelta(0))  # type: ignore[arg-type]
    with pytest.raises(AlreadyRunning, match="another sweep"), alone:
        until("its thread has ended", lambda: bool(ended) and ended[0].is_set())


# --- whose lease it is ---------------------------------------------------------------------------

LASTS = timedelta(seconds=60)
DEAD = 2**22 + 1
"""No process has this number: it is above what Linux gives."""


def held_by(host: str) -> MemoryLease:
    store = MemoryLease()
    store.take("ours", Holder("another", host), LASTS)
    holding.end_lease_of_the_dead(store, "ours")
    return store


OWN = f"@{holding.this_place().own}"


@pytest.mark.parametrize(
    ("number", "place", "stays"),
    [
        (DEAD, OWN, False),
        (os.getpid(), OWN, False),
        (os.getppid(), OWN, True),
        (DEAD, "@0123456789ab", True),
        (DEAD, "@", True),
        (DEAD, "", True),
    ],
    ids=["gone", "this one", "lives", "in another container", "in no place", "an older version"],
)
def test_a_process_of_this_place_that_is_gone_leaves_its_lease_to_the_next(
    number: int, place: str, stays: bool
) -> None:
    """In another place of the same name processes have numbers of their own."""
    here = holding.this_place()
    assert here.own
    kept = held_by(f"{here.host}:{number}{place}").held_by("ours")
    assert (kept is not None) is stays


def test_without_a_place_nobody_is_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "this_place", lambda: holding.ProcessPlace("mail1", ""))
    assert held_by(f"mail1:{DEAD}@").held_by("ours") is not None


def test_a_process_names_its_host_number_and_place() -> None:
    here, holder = holding.this_place(), holding.this_process()
    assert holder.host == f"{here.host}:{os.getpid()}@{here.own}"
