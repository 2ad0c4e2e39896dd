"""A thread that ends unasked ends its process, with its reason and an exit code to start it again.

The second half puts a fault into each thread of a stream.
"""

import logging
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from signal import SIGTERM, Signals
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from checkpoints.lease import Holder, Lease
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.rights import RIGHTS
from reconcilers.words.errors import (
    AlreadyRunning,
    EndedItself,
    ReconcilerError,
    Rejected,
    Unreachable,
)
from reconcilers.words.exit_codes import ExitCode
from streaming import app
from streaming.canary.writer import CanaryKeeper
from streaming.commands.running import canary, own_stream, servers, standby, stream
from streaming.commands.running import leases as holding
from streaming.commands.running.own_stream import OwnStream
from streaming.commands.running.own_sweeps import OwnSweeps
from streaming.commands.running.signals import Stop
from streaming.commands.running.stream import StreamOptions
from streaming.commands.running.threads import Threads
from streaming.commands.wiring import workers
from streaming.commands.wiring.stream_names import StreamNames
from streaming.counters.thread import CountingThread
from streaming.monitoring.agents import AgentWatch
from streaming.settings import Mode, Settings
from tests.builders.failing import unreachable
from tests.builders.systemd import message_with, systemd_socket
from tests.fakes.checkpoints.lease import MemoryLease

pytestmark = pytest.mark.filterwarnings(  # of pytest's own hook: Python's says nothing of them
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)
ANY: Any = None
HANG_S = 60.0
"""Against hangs only."""


def broken(*_: object) -> None:
    """What nobody expected."""
    raise KeyError("gone")


def returned(*_: object) -> None:
    """As if it had been told to stop."""


def until_told(stop: Event) -> None:
    assert stop.wait(HANG_S)


def ended(*runs: Callable[[Event], object]) -> ReconcilerError:
    """Why a process of these threads ends; all of its threads do."""
    threads = Threads(Event())
    started = [threads.start(f"t{number}", run) for number, run in enumerate(runs)]
    assert threads.stop.wait(HANG_S)
    for each in started:
        each.join(HANG_S)
        assert not each.is_alive()
    with pytest.raises(ReconcilerError) as why:
        threads.check()
    return why.value


def test_an_exception_ends_the_process_and_the_log_has_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    why = ended(until_told, broken)
    assert why.exit_code is ExitCode.START_AGAIN
    assert str(why) == "thread t1 has ended by a defect: KeyError('gone')"
    (line,) = caplog.records
    assert line.levelno == logging.CRITICAL
    assert line.exc_info is not None
    assert isinstance(line.exc_info[1], KeyError)


def test_a_return_ends_it_too(caplog: pytest.LogCaptureFixture) -> None:
    why = ended(until_told, returned)
    assert (type(why), str(why)) == (EndedItself, "thread t1 has ended unexpectedly")
    assert len(caplog.records) == 1


def test_an_error_that_says_who_has_to_act_is_that_of_the_process() -> None:
    def lost(_: Event) -> None:
        raise AlreadyRunning("another")

    assert isinstance(ended(until_told, lost), AlreadyRunning)


def test_threads_that_end_as_they_are_told_end_nothing(caplog: pytest.LogCaptureFixture) -> None:
    threads = Threads(Event())
    started = [threads.start("ours", until_told) for _ in range(3)]
    threads.stop.set()
    for each in started:
        each.join(HANG_S)
    threads.check()
    assert caplog.records == []


@pytest.mark.parametrize("fault", [broken, unreachable])
def test_a_thread_that_fails_while_it_is_stopped_is_only_logged(
    fault: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    def run(stop: Event) -> None:
        until_told(stop)
        fault()

    threads = Threads(Event())
    thread = threads.start("ours", run)
    threads.stop.set()
    thread.join(HANG_S)
    threads.check()
    assert [each.levelno for each in caplog.records] == [logging.CRITICAL]


# --- each thread of a stream


@dataclass
class Watched:
    """What takes the place of the query: it ends only when it is told to."""

    lease: MemoryLease = field(default_factory=MemoryLease)
    stopped: bool = False

    def run(self, stop: Event) -> None:
        until_told(stop)
        self.stopped = True


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> Watched:
    """A stream whose surroundings are all there, and answer nothing."""
    made = Watched()
    anything = SimpleNamespace(close=lambda: None)
    for module, name, value in (
        (stream, "make_own", lambda _: None),
        (stream, "refuse_guardrails", lambda _: None),
        (stream, "refuse_without_spark", lambda _: None),
        (stream, "connect", lambda _: None),
        (stream, "schema_of", lambda *_: {}),
        (stream, "bound", lambda *_: (MESSAGE, RIGHTS, MAILBOX_TALLY)),
        (stream, "refuse_guessed_levels", lambda _: None),
        (stream, "refuse_too_few_copies", lambda _: None),
        (stream, "refuse_unfinished_migration", lambda *_: None),
        (stream, "Watcher", lambda _: anything),
        (stream, "_prepare_topics", lambda *_: None),
        (stream, "begin_generation", lambda _: None),
        (workers, "job", lambda of, family, _: SimpleNamespace(settings=of, family=family)),
        (stream, "supervisor", lambda opened, *_, **__: made if opened.leads else OTHERS),
        (stream, "beside_of", lambda *_: ANY),
        (stream, "build_counter_loop", lambda *_: SimpleNamespace(run=until_told, take=broken)),
        (stream, "canaries", lambda _: None),
        (canary, "has_table", lambda _: True),
        (canary, "keeper", lambda *_: CanaryKeeper(ANY, ANY, 1.0)),
        (holding, "CassandraLease", lambda _: made.lease),
        (AgentWatch, "run", lambda _, stop: until_told(stop)),
        (stream, "watch_addresses", lambda _, stop: until_told(stop)),
        (OwnSweeps, "run", lambda _, stop: until_told(stop)),
        (CanaryKeeper, "run", lambda _, stop: until_told(stop)),
        (Lease, "keep", lambda _, stop, __: until_told(stop)),
    ):
        monkeypatch.setattr(module, name, value)
    return made


SETTINGS = Settings.model_validate(
    {"agent": {"http": ("http://127.0.0.1:1",)}, "metrics": {"port": 0}, "sample": {"one_in": 0}}
)


OTHERS = SimpleNamespace(run=until_told)
"""What runs for another family than that of messages."""


@pytest.mark.parametrize("fault", [broken, returned])
@pytest.mark.parametrize(
    ("name", "owner", "method"),
    [
        ("agents", AgentWatch, "run"),
        ("canaries", CanaryKeeper, "run"),
        ("counting", CountingThread, "run"),
        ("sweep", OwnSweeps, "run"),
        ("lease", Lease, "keep"),
        ("addresses", stream, "watch_addresses"),
        ("stream of rights", OTHERS, "run"),
    ],
)
def test_each_thread_of_a_stream_ends_it(
    query: Watched,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    owner: Any,
    method: str,
    fault: Callable[..., None],
) -> None:
    monkeypatch.setattr(owner, method, fault)
    with pytest.raises(EndedItself, match=f"thread {name} has ended"):
        stream.run_stream(SETTINGS, Mode.REPAIR, Event())
    assert query.stopped, "nothing is cut off: it ends as by SIGTERM"


@pytest.mark.parametrize(("number", "code"), [(None, ExitCode.START_AGAIN), (SIGTERM, 0)])
def test_the_command_ends_with_the_code_of_its_thread_unless_a_signal_came(
    query: Watched, monkeypatch: pytest.MonkeyPatch, number: Signals | None, code: int
) -> None:
    stop = Stop()
    stop.number = number
    monkeypatch.setattr(stream, "stopped_by_signals", lambda: stop)
    monkeypatch.setattr(CountingThread, "run", broken)
    arguments = app.parsed(["stream", "--mode", "repair"])
    try:
        ended = stream.run(SETTINGS, arguments)
    except ReconcilerError as failed:
        ended = failed.exit_code
    assert ended == code
    assert query.stopped


def test_a_stream_that_is_stopped_ends_without_an_error(query: Watched) -> None:
    stop = Event()
    stop.set()
    stream.run_stream(SETTINGS, Mode.REPAIR, stop)
    assert query.stopped


def test_a_stream_ends_after_those_of_its_other_families(
    query: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the process would cut off what they write."""
    ends, stop = Event(), Event()

    def ends_later(told: Event) -> None:
        until_told(told)
        assert ends.wait(HANG_S)

    monkeypatch.setattr(OTHERS, "run", ends_later)
    runs = Thread(target=stream.run_stream, args=(SETTINGS, Mode.REPAIR, stop))
    runs.start()
    stop.set()
    runs.join(1.0)
    assert runs.is_alive()
    ends.set()
    runs.join(HANG_S)
    assert not runs.is_alive()
    assert query.stopped


def test_systemd_is_told_that_the_stream_has_begun_and_that_it_stops(
    query: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = Event()
    with systemd_socket(monkeypatch) as ours:
        runs = Thread(target=stream.run_stream, args=(SETTINGS, Mode.OBSERVE, stop))
        runs.start()
        assert "WATCHDOG=1" in message_with(ours, "READY=1")
        stop.set()
        message_with(ours, "STOPPING=1")
        runs.join(HANG_S)
    assert query.stopped


def test_a_stream_that_stands_by_takes_over_and_looks_at_our_keyspace_again(
    query: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version may have upgraded it meanwhile."""
    first, made = Holder("first", "mail1:7@"), list[object]()
    query.lease.take("apache_james/repair", first, timedelta(seconds=60))
    monkeypatch.setattr(standby, "CassandraLease", lambda _: query.lease)
    monkeypatch.setattr(standby, "LOOKS_EVERY", 0.01)
    monkeypatch.setattr(stream, "make_own", made.append)
    stop, waits = Event(), StreamOptions(standby=True)
    with systemd_socket(monkeypatch) as ours:
        runs = Thread(target=stream.run_stream, args=(SETTINGS, Mode.REPAIR, stop, waits))
        runs.start()
        assert "READY=1" in message_with(ours, "STATUS=it stands by: mail1:7@ holds the lease")
        assert len(made) == 1
        query.lease.leave("apache_james/repair", first)
        message_with(ours, "STATUS=no batch has ended yet")
        assert len(made) == 2
        stop.set()
        runs.join(HANG_S)
    assert query.stopped


def test_a_second_stream_of_a_host_is_refused_by_the_lease_and_not_by_a_taken_port(
    query: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line then names who holds it."""
    query.lease.take("apache_james/repair", Holder("first", "mail1:7@"), timedelta(seconds=60))
    monkeypatch.setattr(stream, "serve", broken)
    with pytest.raises(AlreadyRunning, match="mail1:7@"):
        stream.run_stream(SETTINGS, Mode.REPAIR, Event())


def test_a_stream_waits_for_kafka_and_holds_its_lease_meanwhile(
    query: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def away(_: object) -> SimpleNamespace:
        asked.append(query.lease.held_by("apache_james/repair") is not None)
        if len(asked) < 3:
            raise Unreachable("no Kafka broker answers")
        stop.set()
        return SimpleNamespace(close=lambda: None)

    stop = Event()
    monkeypatch.setattr(servers, "RETRY", 0)
    monkeypatch.setattr(stream, "Watcher", away)
    stream.run_stream(SETTINGS, Mode.REPAIR, stop)
    assert asked[:3] == [True, True, True]
    assert query.stopped


def test_a_stream_that_kafka_rejects_ends_at_once_and_leaves_its_lease(
    query: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rejects(_: object) -> None:
        raise Rejected("the login is refused")

    monkeypatch.setattr(stream, "Watcher", rejects)
    with pytest.raises(Rejected):
        stream.run_stream(SETTINGS, Mode.REPAIR, Event())
    assert query.lease.held_by("apache_james/repair") is None
    assert not query.stopped


def test_so_does_the_one_stream_of_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_stream, "run_stream", broken)
    monkeypatch.setattr(own_stream, "CassandraLease", lambda _: MemoryLease())
    sink: Any = SimpleNamespace(
        stream=SimpleNamespace(running=lambda: False), wait=lambda _: None, settled_by=returned
    )
    names, store = StreamNames.of(SETTINGS, Mode.REPAIR), nullcontext()
    with (
        OwnStream(SETTINGS, names, store, [sink]) as beside,  # type: ignore[arg-type]
        pytest.raises(EndedItself, match="KeyError"),
    ):
        beside.begin()
