"""What a sweep or replay does with what it finds: never more than the streams that run do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from checkpoints.lease import Holder
from checkpoints.memory_lease import MemoryLease
from reconcilers.errors import AlreadyRunning, Misconfigured
from streaming.commands import own_stream
from streaming.commands.holding import this_place
from streaming.commands.mode import StreamNames
from streaming.commands.own_stream import OwnStream, mode_of
from streaming.settings import Mode, Settings

SETTINGS = Settings()
REPAIRING = StreamNames.of(SETTINGS, Mode.REPAIR)
OTHER_HOST = Holder("id", "elsewhere:12@0123456789ab")


@pytest.fixture
def leases(monkeypatch: pytest.MonkeyPatch) -> MemoryLease:
    kept = MemoryLease(lambda: 0.0)
    monkeypatch.setattr(own_stream, "CassandraLease", lambda store: kept)
    return kept


STORE: Any = None


def test_where_no_stream_repairs_nothing_is_repaired_unless_asked_for(
    leases: MemoryLease, capsys: pytest.CaptureFixture[str]
) -> None:
    assert leases.held_by(REPAIRING.lease) is None
    assert mode_of(None, SETTINGS, STORE) is Mode.OBSERVE
    assert "no stream repairs now" in capsys.readouterr().err
    assert mode_of("repair", SETTINGS, STORE) is Mode.REPAIR
    assert mode_of("observe", SETTINGS, STORE) is Mode.OBSERVE


def test_where_one_repairs_it_is_left_to_it(leases: MemoryLease) -> None:
    leases.take(REPAIRING.lease, OTHER_HOST, timedelta(minutes=1))
    assert mode_of(None, SETTINGS, STORE) is Mode.REPAIR
    assert mode_of("observe", SETTINGS, STORE) is Mode.OBSERVE


def test_a_stream_of_this_host_that_is_gone_repairs_nothing(leases: MemoryLease) -> None:
    gone = 2**22 + 1  # no process has this number
    leases.take(
        REPAIRING.lease, Holder("id", f"here:{gone}@{this_place().own}"), timedelta(minutes=1)
    )
    assert mode_of(None, SETTINGS, STORE) is Mode.OBSERVE


class Sink:
    """Asks whether a stream runs; waits as long as it is told to."""

    def __init__(self, *running: bool) -> None:
        self.answers = list(running)
        self.stream: Any = self
        self.waited: list[float] = []

    def running(self) -> bool:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)


def beside(sink: Any) -> OwnStream:
    return OwnStream(SETTINGS, REPAIRING, STORE, sink)


@pytest.mark.usefixtures("leases")
def test_beside_a_stream_none_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_stream, "run_stream", lambda *_: pytest.fail("it was begun"))
    with beside(Sink(True)) as stream:
        stream.begin()
        assert not stream.runs


@pytest.mark.usefixtures("leases")
def test_one_is_begun_that_never_sweeps_itself_and_ends_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []

    def run(settings: Settings, mode: Mode, stop: Any) -> None:
        seen.extend((settings.sweep.when_needed, settings.sweep.every_days, mode))
        stop.wait()
        seen.append("ended")

    monkeypatch.setattr(own_stream, "run_stream", run)
    sink = Sink(False, False, True)
    with beside(sink) as stream:
        stream.begin()
        assert stream.runs
        assert sink.waited == [own_stream.LOOK_EVERY]
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
