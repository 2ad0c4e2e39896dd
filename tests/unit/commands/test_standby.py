"""`stream --standby` waits while another stream holds the lease, and takes over when it ends."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest

from checkpoints.lease import Holder, Lease
from reconcilers.words.errors import AlreadyRunning, Misconfigured, Unreachable
from streaming.commands.look import status
from streaming.commands.look.status_shown import _stream_text
from streaming.commands.running import leases, servers, standby, stream
from streaming.commands.running.leases import Holding
from streaming.commands.running.standby import LOOKS_EVERY, StandBy
from streaming.commands.running.stream import StreamOptions
from streaming.commands.running.threads import Threads
from streaming.commands.wiring.stream_names import StreamNames
from streaming.monitoring.systemd import Notifier
from streaming.settings import Mode, Settings
from tests.fakes.checkpoints.lease import MemoryLease
from tests.fakes.checkpoints.progress import MemoryBookmarks

ANY: Any = None
SETTINGS = Settings()
NAMES = StreamNames.of(SETTINGS, Mode.REPAIR)
LASTS = timedelta(seconds=60)
FIRST, OTHER = Holder("first", "mail1:7@"), Holder("other", "mail3:9@")


class Waits(Event):
    """Each wait of a stream that stands by calls ``meanwhile`` with its number, from 1 on."""

    def __init__(self, meanwhile: Callable[[int], object]) -> None:
        super().__init__()
        self.meanwhile, self.waited = meanwhile, list[float | None]()

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        self.meanwhile(len(self.waited))
        return self.is_set()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryLease:
    """Where the first stream holds the lease."""
    made = MemoryLease()
    made.take(NAMES.lease, FIRST, LASTS)
    for module in (leases, standby):
        monkeypatch.setattr(module, "CassandraLease", lambda _: made)
    monkeypatch.setattr(Lease, "keep", lambda _, stop, __: stop.wait())
    return made


def standing_by(threads: Threads) -> Holding:
    waiter = StandBy(NAMES, ANY, threads, timedelta(0))
    return Holding(NAMES, ANY, threads, timedelta(0), waiter)


def test_it_waits_until_the_lease_is_free_and_shows_that(store: MemoryLease) -> None:
    seen: list[tuple[list[str], bool]] = []

    def meanwhile(number: int) -> None:
        shown = store.held_by(NAMES.standby)
        seen.append((threads.health.unready(), shown is not None and shown.id != FIRST.id))
        assert "READY=1" in Notifier(threads.health, "").state(), "for systemd it has started"
        assert threads.health.dead() is None
        if number == 3:
            store.leave(NAMES.lease, FIRST)

    threads = Threads(waits := Waits(meanwhile))
    threads.before_waiting = served = Mock()
    with standing_by(threads) as lease:
        served.assert_called()
        assert waits.waited == [LOOKS_EVERY] * 3
        assert seen == [(["it stands by: mail1:7@ holds the lease"], True)] * 3
        assert lease is not None
        assert lease.holds()
        assert store.held_by(NAMES.standby) is None
        assert threads.health.unready() == ["it starts"]
        assert "READY=1" not in Notifier(threads.health, "").state()
    assert store.held_by(NAMES.lease) is None


def test_one_that_need_not_wait_shows_nothing(store: MemoryLease) -> None:
    store.leave(NAMES.lease, FIRST)
    threads = Threads(Waits(lambda _: pytest.fail("it waits")))
    with standing_by(threads):
        assert store.held_by(NAMES.standby) is None


def test_without_the_option_it_is_refused(store: MemoryLease) -> None:
    threads = Threads(Waits(lambda _: pytest.fail("it waits")))
    with pytest.raises(AlreadyRunning, match="mail1:7@"), Holding(NAMES, ANY, threads, LASTS):
        pytest.fail("two streams run")


def test_one_that_is_stopped_waits_no_longer(store: MemoryLease) -> None:
    threads = Threads(waits := Waits(lambda _: waits.set()))
    with pytest.raises(AlreadyRunning), standing_by(threads):
        pytest.fail("two streams run")
    assert store.held_by(NAMES.standby) is None
    assert store.held_by(NAMES.lease) == FIRST


def test_a_third_one_waits_too(store: MemoryLease) -> None:
    store.take(NAMES.standby, OTHER, LASTS)
    threads = Threads(Waits(lambda _: store.leave(NAMES.lease, FIRST)))
    with standing_by(threads) as lease:
        assert lease is not None
        assert lease.holds()
    assert store.held_by(NAMES.standby) == OTHER


def test_it_outlasts_a_cassandra_that_is_away(
    store: MemoryLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "RETRY", 0)
    take, away = store.take, [Unreachable("no host answered")] * 3

    def often_away(*asked: Any) -> Holder:
        if asked[0] == NAMES.lease and away:
            raise away.pop()
        return take(*asked)

    def meanwhile(_: int) -> None:
        if not away:
            store.leave(NAMES.lease, FIRST)

    monkeypatch.setattr(store, "take", often_away)
    with standing_by(Threads(Waits(meanwhile))) as lease:
        assert lease is not None
        assert lease.holds()


def test_a_stream_that_observes_has_nothing_to_wait_for() -> None:
    with pytest.raises(Misconfigured, match="--standby needs --mode repair"):
        stream.run_stream(SETTINGS, Mode.OBSERVE, Event(), StreamOptions(standby=True))


def test_status_names_it(store: MemoryLease, monkeypatch: pytest.MonkeyPatch) -> None:
    store.take(NAMES.standby, OTHER, LASTS)
    monkeypatch.setattr(status, "CassandraLease", lambda _: store)
    monkeypatch.setattr(status, "CassandraBookmarks", lambda _: MemoryBookmarks())
    first, *_ = status._streams(SETTINGS, Mock(), None)
    assert first.standby == OTHER
    line, *_ = _stream_text(first)
    assert line == ("repair stream: last settled never yet, run by mail1:7@, mail3:9@ stands by")
