"""What can be injected, and into what; a stand-in takes the place of the stream's processes."""

import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy import stream_process
from deploy.embedded.errors import StartError
from deploy.embedded.layout import Layout
from deploy.embedded.process import processes_of_session
from deploy.embedded.spark_cluster import SparkCluster, SparkWorker
from deploy.embedded.spec import Wanted, decide
from deploy.embedded.wait import until
from deploy.nemesis import service, tools
from deploy.nemesis.injectors import injectors
from deploy.nemesis.plan import RunPlan
from deploy.nemesis.schedule import FaultChoice, InjectedFault
from deploy.nemesis.stream import StreamProcess

STAND_IN = """
import subprocess, sys, time
if sys.argv[1] == "findings":
    if "--kind" not in sys.argv:
        sys.exit("all kinds")
    print('{{"mailboxid": "a", "uid": 3}}')
    sys.exit({fails})
child = "import time; time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child, "pyspark.daemon"], process_group=0)
print("metrics on port", {port}, flush=True)
time.sleep(600)
"""
SWEPT = "sweep: lineage is complete"
SAID = b'# TYPE reconciler_sweep_due gauge\nreconciler_sweep_due{family="message"} 1.0\n'


class Told:
    """Stands for a stack, a node, an agent or a stream: notes what it is told."""

    def __init__(self, name: str, told: list[str]) -> None:
        self._name, self._told = name, told

    def __str__(self) -> str:
        return self._name

    def __getattr__(self, what: str) -> Any:
        return lambda *words: self._told.append(" ".join([self._name, what, *map(str, words)]))


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def possible(told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    nodes = []
    for number in (1, 2, 3):
        node = Told(f"node {number}", told)
        node.__dict__["cassandra"] = Told(f"cassandra {number}", told)
        node.__dict__["agent"] = Told(f"agent {number}", told)
        node.__dict__["place"] = SimpleNamespace(host=f"127.0.0.{number}", number=number)
        nodes.append(node)
    stack = Told("stack", told)
    stack.__dict__["nodes"] = nodes
    stack.__dict__["keyspace"] = "mail"
    stack.__dict__["layout"] = Layout(tmp_path)
    stack.__dict__["spec"] = decide(Layout(tmp_path), Wanted(tables=("t",), data_centres=(3,)))
    second = Told("second", told)
    second.__dict__["port"] = 9
    plan = RunPlan(1, 1.0, "5.0", 1.0)
    return injectors(stack, Told("stream", told), second, plan)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "target", "wanted"),
    [
        (InjectedFault.KILL_NODE, "127.0.0.1", ["node 1 kill", "node 1 start"]),
        (InjectedFault.PAUSE_NODE, "127.0.0.2", ["node 2 pause", "node 2 resume"]),
        (InjectedFault.REPLACE_NODE, "127.0.0.3", ["node 3 kill", "node 3 replace"]),
        (
            InjectedFault.KILL_WITHOUT_HINTS,
            "127.0.0.2",
            [
                "cassandra 1 nodetool disablehandoff",
                "cassandra 3 nodetool disablehandoff",
                "node 2 kill",
                "node 2 start",
                "cassandra 1 nodetool enablehandoff",
                "cassandra 3 nodetool enablehandoff",
            ],
        ),
        (InjectedFault.REPAIR, "127.0.0.3", ["cassandra 3 nodetool repair --full mail"]),
        (InjectedFault.KILL_AGENT, "127.0.0.1", ["agent 1 kill", "agent 1 let_go"]),
        (InjectedFault.PAUSE_AGENT, "127.0.0.1", ["agent 1 pause", "agent 1 resume"]),
        (InjectedFault.KILL_BROKER, "broker", ["stack kill_kafka", "stack start_kafka"]),
        (InjectedFault.PAUSE_BROKER, "broker", ["stack pause_kafka", "stack resume_kafka"]),
        (InjectedFault.KILL_STREAM, "stream", ["stream crash", "stream start"]),
        (InjectedFault.PAUSE_STREAM, "stream", ["stream pause", "stream resume"]),
        (InjectedFault.KILL_WORKERS, "stream", ["stream kill_workers"]),
        (InjectedFault.PAUSE_WORKERS, "stream", ["stream pause_workers", "stream resume"]),
        (InjectedFault.UPGRADE, "127.0.0.2", ["stack upgrade node 2"]),
    ],
)
def test_each_kind_of_fault(
    possible: Any, told: list[str], kind: InjectedFault, target: str, wanted: list[str]
) -> None:
    [injector] = [
        how for each, how in possible.items() if (each.kind, each.target) == (kind, target)
    ]
    injector.inject()
    injector.heal()
    assert told == wanted


def test_a_cut_adds_its_rules_and_healing_removes_them(
    possible: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(tools, "iptables", lambda *words: told.append(words))
    injector = possible[FaultChoice(InjectedFault.DROPPED, "the stream and the brokers", "stream")]
    injector.inject()
    injector.heal()
    added, removed = told[:4], told[4:]
    assert [each[:2] for each in added] == [("-A", "nemesis")] * 4
    assert removed == [("-D", *each[1:]) for each in added]


def test_every_kind_can_be_injected_and_one_of_the_cluster_at_a_time(possible: Any) -> None:
    assert {each.kind for each in possible} == set(InjectedFault)
    assert {each.group for each in possible if "127." in each.target} == {"cluster"}
    assert FaultChoice(InjectedFault.REPLACE_NODE, "127.0.0.1", "cluster") not in possible


@pytest.fixture
def port() -> Iterator[int]:
    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(SAID)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture
def stream(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[StreamProcess]:
    program = tmp_path / "stand_in.py"
    program.write_text(STAND_IN.format(port=port, fails=0))
    monkeypatch.setattr(stream_process, "RECONCILE", (sys.executable, str(program)))
    given = tmp_path / "stack.toml"
    given.write_text('[kafka]\ntopic_prefix = "james"\n[stream]\ncheckpoint_dir = "old"\n')
    with StreamProcess(given, tmp_path, 10) as made:
        until(lambda: bool(made.workers() and made.samples()), 60, "the stand-in runs")
        yield made


def test_users_begin_when_everything_was_swept_once(
    stream: StreamProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stream.log.open("a") as log:
        log.write(f"{SWEPT}\n")
    assert not stream._watches()
    monkeypatch.setattr(f"{__name__}.SAID", SAID.replace(b" 1.0", b" 0.0"))
    stream.await_watching()
    stream.crash()
    stream.start()
    until(lambda: bool(stream.samples()), 60, "it tells its metrics")
    assert not stream._watches()


def states(stream: StreamProcess) -> set[str]:
    """Of all its processes, as /proc tells them."""
    assert stream._process is not None
    found = processes_of_session(stream._process.pid)
    return set(map(state, found))


def state(pid: int) -> str:
    text = Path(f"/proc/{pid}/stat").read_text()
    return text.rpartition(")")[2].split()[0]


def test_a_stream_is_paused_and_goes_on(stream: StreamProcess) -> None:
    stream.pause()
    until(lambda: states(stream) == {"T"}, 60, "all are stopped")
    stream.resume()
    until(lambda: "T" not in states(stream), 60, "all go on")


def test_only_workers_are_killed(stream: StreamProcess) -> None:
    stream.kill_workers()
    until(lambda: not stream.workers(), 60, "the worker is gone")
    assert stream.samples()[0].value == 1.0


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """Stands for the executor of a cluster, which is none of the stream's processes."""
    with subprocess.Popen(["sleep", "600"]) as running:
        monkeypatch.setattr(SparkWorker, "executors", lambda self: executors_of(self, running))
        yield running
        running.kill()


def executors_of(worker: SparkWorker, running: subprocess.Popen[bytes]) -> list[int]:
    return [running.pid] if worker.host == "127.0.0.2" and running.poll() is None else []


def test_executors_of_a_cluster_are_its_workers(
    tmp_path: Path, executor: subprocess.Popen[bytes]
) -> None:
    given = tmp_path / "stack.toml"
    given.write_text('[stream]\nmaster = "local[2]"\njars = "here"\n')
    cluster = SparkCluster(tmp_path / "spark")
    made = StreamProcess(given, tmp_path, 10, cluster)
    settings = tomllib.loads(made.config.read_text())
    assert settings["stream"]["master"] == cluster.url
    assert settings["stream"]["delay"] == 10
    assert settings["spark"]["spark.cores.max"] == 2
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as driver:
        made._process = driver
        made.pause_workers()
        until(lambda: state(executor.pid) == "T", 60, "it is stopped")
        made.resume()
        until(lambda: state(executor.pid) != "T", 60, "it goes on")
        made.kill_workers()
        assert executor.wait() == -signal.SIGKILL
        made.kill()


@pytest.mark.parametrize(("code", "starts"), [(4, 2), (70, 1)])
def test_it_is_started_again_where_a_restart_mends_its_end(
    tmp_path: Path, code: int, starts: int
) -> None:
    """The second time it ends in order; a defect ends the run."""
    noted = tmp_path / "starts"
    program = (
        f"import pathlib, sys; noted = pathlib.Path({str(noted)!r}); again = noted.exists(); "
        f"noted.open('a').write('started '); sys.exit(0 if again else {code})"
    )
    done = service.main([sys.executable, "-c", program], pause_s=0.0)
    assert done == (0 if starts == 2 else code)
    assert noted.read_text().split() == ["started"] * starts


def test_sigterm_ends_it_with_what_it_runs(stream: StreamProcess) -> None:
    assert stream.stop() == 256 - signal.SIGTERM  # as a shell tells a signal


def test_a_stream_that_crashed_is_started_again(stream: StreamProcess) -> None:
    [worker] = stream.workers()
    stream.crash()
    with pytest.raises(StartError, match="ended by itself"):
        stream.crash()
    stream.start()
    until(lambda: stream.workers() not in ([], [worker]), 60, "another worker")
    until(lambda: bool(stream.samples()), 60, "it tells its metrics")


def test_rows_left_to_a_person_are_those_that_the_command_names(
    stream: StreamProcess, tmp_path: Path
) -> None:
    assert stream.left_to_a_person() == {("a", 3)}
    (tmp_path / "stand_in.py").write_text(STAND_IN.format(port=0, fails="'it is down'"))
    with pytest.raises(StartError, match="`reconcile findings` ended with 1: it is down"):
        stream.left_to_a_person()


def test_the_settings_are_those_of_the_stack_with_a_short_delay(stream: StreamProcess) -> None:
    text = stream.config.read_text()
    assert 'topic_prefix = "james"' in text
    assert "delay = 10" in text
    assert "lost_after = 60" in text
    assert "old" not in text
