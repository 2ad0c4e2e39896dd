"""Agents are asked whether they are well: one that is dead is not missed otherwise."""

import json
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, ClassVar

import pytest
from prometheus_client import CollectorRegistry

from streaming.monitoring.agents import AgentWatch, asking, unwell
from streaming.monitoring.metrics import Metrics
from streaming.settings import AgentSettings
from tests.builders.tls import HERE as TLS_HERE
from tests.builders.tls import authority, server_context

WELL: dict[str, Any] = {"queue": {"healthy": True}, "reader": {"healthy": True}}
HERE, THERE = "http://a:1", "http://b:1"


class Agent(BaseHTTPRequestHandler):
    """Answers what it is told to."""

    health: ClassVar[Any] = WELL

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 404)
        if self.health is None:
            self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(json.dumps(self.health).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    Agent.health = WELL
    with HTTPServer(("127.0.0.1", 0), Agent) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_each_part_says_whether_it_is_well(address: str) -> None:
    assert unwell(address) == []
    Agent.health = {**WELL, "reader": {"healthy": False}, "sender": "healthy"}
    assert unwell(address) == ["reader", "sender"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_an_agent_behind_a_proxy_with_tls(tmp_path: Path) -> None:
    made = authority(tmp_path)
    Agent.health = WELL
    with HTTPServer((TLS_HERE, 0), Agent) as server:
        server.socket = server_context(made).wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"https://{TLS_HERE}:{server.server_port}"
        assert asking(AgentSettings(tls_ca=made.ca))(address) == []
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            asking(AgentSettings())(address)
        server.shutdown()


def test_what_is_no_agent_is_an_error(address: str) -> None:
    Agent.health = 7
    with pytest.raises(TypeError):
        unwell(address)


def test_one_that_dies_while_it_answers_is_an_error_of_the_network(address: str) -> None:
    Agent.health = None
    with pytest.raises(OSError, match="a broken answer"):
        unwell(address)


def shown(metrics: Metrics) -> dict[str, float | None]:
    value = metrics.registry.get_sample_value
    return {each: value("reconciler_agent_up", {"agent": each}) for each in (HERE, THERE)}


@pytest.mark.parametrize("error", [OSError("refused"), ValueError("no JSON"), TypeError("7")])
def test_an_agent_that_does_not_answer_is_down(error: Exception) -> None:
    def ask(address: str) -> list[str]:
        if address == THERE:
            raise error
        return []

    metrics = Metrics(CollectorRegistry())
    AgentWatch([HERE, THERE], metrics, ask).measure()
    assert shown(metrics) == {HERE: 1, THERE: 0}


def test_an_agent_with_a_part_that_is_not_well_is_down_until_it_is() -> None:
    metrics, parts = Metrics(CollectorRegistry()), ["queue"]
    watch = AgentWatch([HERE], metrics, lambda _: parts)
    watch.measure()
    assert shown(metrics) == {HERE: 0, THERE: None}
    parts.clear()
    watch.measure()
    assert shown(metrics)[HERE] == 1


def test_without_an_agent_named_nobody_is_asked_and_the_thread_ends() -> None:
    AgentWatch([], Metrics(CollectorRegistry())).run(Event())


def test_they_are_asked_until_told_to_stop() -> None:
    stop, asked = Event(), []

    def ask(address: str) -> list[str]:
        asked.append(address)
        stop.set()
        return []

    AgentWatch([HERE], Metrics(CollectorRegistry()), ask).run(stop)
    assert asked == [HERE]
