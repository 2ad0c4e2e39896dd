"""`reconcile sweep` beside a running sweep: it is refused, or waits with ``--wait``."""

from __future__ import annotations

from argparse import Namespace
from datetime import timedelta
from typing import Any

import pytest

from checkpoints.lease import Holder
from reconcilers.words.errors import AlreadyRunning
from streaming.again.sweep import Interrupted
from streaming.commands.again.sweep import beside_another
from streaming.commands.running import leases
from tests.fakes.checkpoints.lease import MemoryLease

NAME, HOUR = "james/sweep", timedelta(hours=1)
OTHER = Holder("another", "mail-2:7")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryLease:
    monkeypatch.setattr(leases, "CassandraLease", lambda store: store)
    made = MemoryLease()
    made.take(NAME, OTHER, HOUR)
    return made


def alone(store: Any, busy: Any) -> leases.Alone:
    return leases.Alone(store, NAME, timedelta(0), busy)


def test_without_wait_it_is_refused_and_says_what_to_do(store: MemoryLease) -> None:
    wait_not = beside_another(Namespace(wait=False), lambda _: None)
    with (
        pytest.raises(AlreadyRunning, match=r"another sweep .*mail-2.*--wait.*reconcile status"),
        alone(store, wait_not),
    ):
        raise AssertionError("it has begun")


def test_with_wait_it_says_so_once_and_begins_when_the_other_has_ended(
    store: MemoryLease, capsys: pytest.CaptureFixture[str]
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            store.leave(NAME, OTHER)

    with alone(store, beside_another(Namespace(wait=True), wait)):
        holder = store.held_by(NAME)
        assert holder is not None
        assert holder != OTHER
    assert len(waits) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "another sweep" in line
    assert "mail-2" in line


def test_who_waits_can_be_stopped(store: MemoryLease) -> None:
    def stopped(_: float) -> None:
        raise Interrupted

    with pytest.raises(Interrupted), alone(store, beside_another(Namespace(wait=True), stopped)):
        raise AssertionError("it has begun")
    assert store.held_by(NAME) == OTHER
