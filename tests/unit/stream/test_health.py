"""`/livez` and `/readyz`: the rows of the table in docs/health.md, with real threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Event, Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import Positions
from checkpoints.lease import Holder, Lease
from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.sample import SampledBatch
from reconcilers.words.errors import Unreachable
from streaming.commands.running.sampler import start_sampler
from streaming.commands.running.threads import Threads
from streaming.commands.wiring.sampler import SamplerParts
from streaming.monitoring.endpoint import HttpAnswer, health_routes, serve
from streaming.monitoring.health import HUNG_AFTER, SLOW_HUNG_AFTER, readiness
from streaming.monitoring.metrics import Metrics
from streaming.pipeline import supervisor
from streaming.pipeline.sample_events import SampleReader
from streaming.settings import MetricsSettings, StreamSettings
from tests.builders.rows import FAMILY
from tests.fakes.checkpoints.lease import MemoryLease
from tests.unit.stream.test_sampler import Bench as SamplerBench
from tests.unit.stream.test_supervisor import Bench

STREAM = StreamSettings()
BATCH_S = 5 * (STREAM.delay + STREAM.window)
HANG_S = 60.0
"""Against hangs only."""


class Clock:
    """Monotonic seconds; stands still until it is put forward."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Process:
    """The threads of a process with a lease and metrics, served over HTTP."""

    def __init__(self) -> None:
        self.clock, self.stop = Clock(), Event()
        self.threads = Threads(self.stop, clock=self.clock)
        self.health = self.threads.health
        self.metrics = Metrics(CollectorRegistry())
        holder = Holder("me", "here")
        self.leases = MemoryLease()
        self.lease = Lease(
            self.leases, "lease", holder, lasts=timedelta(seconds=60), clock=self.clock
        )
        self.lease.acquire()
        self.health.checks += readiness(STREAM, self.metrics, self.lease)
        self.port = serve(self.metrics, MetricsSettings(port=0), routes=health_routes(self.health))

    def batch_ended(self, seconds_ago: float = 0.0) -> None:
        self.metrics.last_batch.labels(MESSAGE.name).set(time.time() - seconds_ago)

    def get(self, path: str) -> tuple[int, str]:
        return fetched(self.port, path)

    @property
    def alive(self) -> bool:
        return self.get("/livez") == (200, "ok\n")

    @property
    def unready(self) -> str:
        """Why it is not ready; empty if it is."""
        status, text = self.get("/readyz")
        assert (status == 200) == (text == "ok\n")
        return "" if status == 200 else text


def fetched(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    """The status and text of an answer."""
    try:
        asked = Request(f"http://127.0.0.1:{port}{path}", method=method)
        with urlopen(asked, timeout=HANG_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        return refused.code, refused.read().decode()


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextmanager
def supervised(process: Process, bench: Bench) -> Iterator[None]:
    """The supervising thread of a stream, as it runs."""
    run = bench.supervisor().run
    stop = process.health.watched("supervising", process.stop)
    thread = Thread(target=run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        process.stop.set()
        thread.join(HANG_S)
        assert not thread.is_alive()


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    monkeypatch.setattr(supervisor, "TICK", 0.01)
    return Process()


def test_a_process_that_starts_is_alive_and_not_ready(process: Process) -> None:
    assert process.alive
    assert "it starts" in process.unready
    assert "no batch has ended yet" in process.unready


def test_a_start_that_hangs_is_not_alive(process: Process) -> None:
    process.clock.now += SLOW_HUNG_AFTER
    assert process.alive
    process.threads.starting.turn()
    process.clock.now += SLOW_HUNG_AFTER
    assert process.alive
    process.clock.now += 1
    assert process.get("/livez") == (503, "thread start hangs: no turn for 901 s\n")
    assert "thread start hangs" in process.unready
    with supervised(process, Bench()):
        until(lambda: process.alive)


def test_what_the_supervising_thread_does_before_it_turns_is_a_step_of_the_start(
    process: Process,
) -> None:
    bench, hangs, goes_on = Bench(), Event(), Event()

    def begin(settled: Positions) -> None:
        assert settled is not None
        hangs.set()
        goes_on.wait(HANG_S)

    process.batch_ended()
    bench.query.begin = begin  # type: ignore[method-assign]
    with supervised(process, bench):
        assert hangs.wait(HANG_S)
        process.clock.now += SLOW_HUNG_AFTER
        assert process.alive
        process.clock.now += 1
        assert process.get("/livez") == (503, "thread supervising hangs: no turn for 901 s\n")
        goes_on.set()
        until(lambda: process.alive)


def test_a_stream_that_turns_is_alive_and_ready(process: Process) -> None:
    process.batch_ended()
    with supervised(process, Bench()):
        until(lambda: not process.unready)
        assert process.alive


@pytest.mark.parametrize("away", ["Cassandra", "Kafka"])
def test_a_server_that_is_away_makes_it_not_ready_once_no_batch_ends(
    process: Process, monkeypatch: pytest.MonkeyPatch, away: str
) -> None:
    bench, asked = Bench(), []

    def gone(*_: object) -> None:
        asked.append(away)
        raise Unreachable(f"{away} does not answer")

    process.batch_ended()
    with supervised(process, bench):
        until(lambda: not process.unready)
        for name in ("check", "take"):
            monkeypatch.setattr(supervisor.Measurements, name, gone)
        until(lambda: len(asked) > 2)
        assert not process.unready, "for now"
        process.batch_ended(BATCH_S + 1)
        assert f"no batch has ended for {BATCH_S + 1:.0f} s" in process.unready
        turns = len(asked)
        process.clock.now += HUNG_AFTER / 2
        until(lambda: len(asked) > turns + 2)
        process.clock.now += HUNG_AFTER
        until(lambda: process.alive)


def test_a_dead_query_makes_it_not_ready_once_no_batch_ends(process: Process) -> None:
    bench = Bench()
    bench.query.deaths = ["it died"] * 10_000
    process.batch_ended(BATCH_S - 10)
    with supervised(process, bench):
        until(lambda: not process.unready)
        process.batch_ended(BATCH_S + 1)
        assert "no batch has ended" in process.unready
        assert process.alive


def test_a_lost_lease_makes_it_not_ready_at_once(process: Process) -> None:
    process.batch_ended()
    with supervised(process, Bench()):
        until(lambda: not process.unready)
        process.leases.leave("lease", Holder("me", "here"))
        process.leases.take("lease", Holder("other", "there"), timedelta(seconds=60))
        process.clock.now += 59
        assert process.unready == "the lease is not held\n"
        assert process.alive


def test_an_open_breaker_is_no_reason(process: Process) -> None:
    process.batch_ended()
    process.metrics.breaker.labels("repairs").set(1)
    process.metrics.paused.labels("breaker").set(1)
    with supervised(process, Bench()):
        until(lambda: not process.unready)
        assert process.alive


def test_a_hung_supervising_thread_is_not_alive(process: Process) -> None:
    bench, hangs, goes_on = Bench(), Event(), Event()

    def hang() -> None:
        hangs.set()
        goes_on.wait(HANG_S)

    process.batch_ended()
    bench.checks = [hang]
    with supervised(process, bench):
        assert hangs.wait(HANG_S)
        process.clock.now += HUNG_AFTER
        assert process.alive
        process.clock.now += 1
        assert process.get("/livez")[0] == 503
        assert "thread supervising hangs: no turn for 61 s" in process.unready
        goes_on.set()
        until(lambda: process.alive)


@pytest.mark.parametrize("hung_after", [HUNG_AFTER, SLOW_HUNG_AFTER])
def test_another_hung_thread_makes_it_not_ready(process: Process, hung_after: float) -> None:
    hangs, goes_on = Event(), Event()

    def hang(stop: Event) -> None:
        stop.wait(0)
        hangs.set()
        goes_on.wait(HANG_S)
        stop.wait()

    process.batch_ended()
    process.lease.holds = lambda: True  # type: ignore[method-assign]
    with supervised(process, Bench()):
        process.threads.start("addresses", hang, hung_after)
        assert hangs.wait(HANG_S)
        process.clock.now += hung_after + 1
        told = f"thread addresses hangs: no turn for {hung_after + 1:.0f} s"
        until(lambda: process.unready == f"{told}\n")
        assert process.alive
        goes_on.set()
        until(lambda: not process.unready)


def test_the_sampler_may_read_the_changes_of_ten_minutes_for_long(process: Process) -> None:
    reads, goes_on = Event(), Event()

    def earlier() -> SampledBatch:
        reads.set()
        goes_on.wait(HANG_S)
        return SampledBatch()

    sampler = SamplerBench().sampler
    changes = SampleReader(FAMILY, "james", 1, sampler.take)
    sampler.earlier = earlier
    process.batch_ended()
    process.lease.holds = lambda: True  # type: ignore[method-assign]
    with supervised(process, Bench()):
        start_sampler(SamplerParts(sampler, changes), process.threads)
        assert reads.wait(HANG_S)
        process.clock.now += SLOW_HUNG_AFTER
        until(lambda: not process.unready)
        process.clock.now += 1
        until(lambda: process.unready.startswith("thread sampler hangs: no turn for 901 s"))
        goes_on.set()
        until(lambda: not process.unready)


def test_a_thread_that_waits_or_has_ended_does_not_hang(process: Process) -> None:
    waits = Event()

    def wait(stop: Event) -> None:
        waits.set()
        stop.wait()

    process.batch_ended()
    process.lease.holds = lambda: True  # type: ignore[method-assign]
    with supervised(process, Bench()):
        thread = process.threads.start("agents", wait)
        assert waits.wait(HANG_S)
        until(lambda: not process.unready)
        process.clock.now += 10 * HUNG_AFTER
        until(lambda: not process.unready)
    thread.join(HANG_S)
    process.clock.now += 10 * HUNG_AFTER
    assert "agents" not in process.unready


def test_an_endpoint_only_reads_and_survives_a_page_that_fails(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def broken() -> HttpAnswer:
        raise KeyError("gone")

    metrics = Metrics(CollectorRegistry())
    routes = {"/": lambda: HttpAnswer("<h1>é</h1>", kind="text/html"), "/status": broken}
    port = serve(metrics, MetricsSettings(port=0), routes=routes)
    assert fetched(port, "/") == (200, "<h1>é</h1>")
    assert fetched(port, "/", "HEAD") == (200, "")
    assert fetched(port, "/", "POST")[0] == 405
    assert fetched(port, "/etc/passwd")[0] == 404
    assert fetched(port, "/status")[0] == 500
    assert "KeyError: 'gone'" in capfd.readouterr().err
    assert "reconciler_" in fetched(port, "/metrics")[1]
