"""The lease is held as long as a stream may still write."""

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from checkpoints.lease import Lease
from checkpoints.memory import MemoryLease
from streaming.commands import holding
from streaming.settings import Mode


def test_it_is_renewed_while_the_stream_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    until: list[Event] = []
    begun = Event()

    def keep(_lease: Lease, over: Event) -> None:
        until.append(over)
        begun.set()

    monkeypatch.setattr(Lease, "keep", keep)
    monkeypatch.setattr(holding, "CassandraLease", lambda store: store)
    names: Any = SimpleNamespace(lease="ours", mode=Mode.REPAIR)
    store, stop = MemoryLease(), Event()
    with holding.Holding(names, store, stop):  # type: ignore[arg-type]
        assert begun.wait(60)
        stop.set()  # SIGTERM: the batch that runs has not ended yet
        assert not until[0].is_set()
        assert store.held_by("ours") is not None
    assert until[0].is_set()
    assert store.held_by("ours") is None
