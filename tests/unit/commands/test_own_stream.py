"""The stream that a sweep or replay runs until what it found is settled, where it is asked to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reconcilers.words.errors import AlreadyRunning, Misconfigured
from streaming.commands.running import own_stream
from streaming.commands.running.own_stream import OwnStream
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode, Settings
from tests.fakes.checkpoints.lease import MemoryLease

SETTINGS = Settings()
REPAIRING = StreamNames.of(SETTINGS, Mode.REPAIR)


@pytest.fixture
def leases(monkeypatch: pytest.MonkeyPatch) -> MemoryLease:
    kept = MemoryLease(lambda: 0.0)
    monkeypatch.setattr(own_stream, "CassandraLease", lambda store: kept)
    return kept


STORE: Any = None


class Sink:
    """Asks whether a stream runs; waits as long as it is told to."""

    def __init__(self, *running: bool) -> None:
        self.answers = list(running)
        self.stream: Any = self
        self.waited: list[float] = []
        self.own: Callable[[], bool] | None = None

    def settled_by(self, running: Callable[[], bool]) -> None:
        self.own = running

    def running(self) -> bool:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


def beside(sink: Any) -> OwnStream:
    return OwnStream(SETTINGS, REPAIRING, STORE, [sink])


@pytest.mark.usefixtures("leases")
def test_beside_a_stream_none_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_stream, "run_stream", lambda *_: pytest.fail("it was begun"))
    sink = Sink(True)
    with beside(sink) as stream:
        stream.begin()
        assert not stream.runs
    assert sink.own is None


@pytest.mark.usefixtures("leases")
def test_one_is_begun_that_never_sweeps_itself_and_ends_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def run(settings: Settings, mode: Mode, stop: Any) -> None:
        seen.extend((settings.sweep.when_needed, settings.sweep.every_days, mode))
        assert settings.metrics.port == 0, "a stream of the other mode may have the usual one"
        stop.wait()
        seen.append("ended")

    monkeypatch.setattr(own_stream, "run_stream", run)
    sink = Sink(False, False, True)
    with beside(sink) as stream:
        stream.begin()
        assert stream.runs
        assert sink.waited == [own_stream.LOOK_EVERY]
        assert sink.own is not None
        assert sink.own(), "it runs as long as its thread does, however slowly it settles anything"
    assert not sink.own()
    assert seen == [False, 0, Mode.REPAIR, "ended"]


@pytest.mark.usefixtures("leases")
@pytest.mark.parametrize("error", [Misconfigured("unsafe"), AlreadyRunning("another")])
def test_what_it_fails_with_is_the_commands_error(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def run(*_: object) -> None:
        raise error

    monkeypatch.setattr(own_stream, "run_stream", run)
    with pytest.raises(type(error)), beside(Sink(False)) as stream:
        stream.begin()
