"""The agent's start, with a small program in its place."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.embedded import capture
from deploy.embedded.agent import MOST_STARTS, Agent
from deploy.embedded.agents import Agents
from deploy.embedded.errors import StartError
from deploy.embedded.layout import Layout
from deploy.embedded.spec import Wanted, decide

PROGRAM = """
import http.server, pathlib, sys

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

starts, port, fails, misreads = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
with starts.open("a") as file:
    file.write("x")
if len(starts.read_text()) <= fails:
    sys.exit("ERROR: a file is gone")
if len(starts.read_text()) <= misreads:
    print("ERROR o.a.c.io.sstable.CorruptSSTableException: Corrupted; skipping table", flush=True)
http.server.HTTPServer(("127.0.0.1", port), Answers).serve_forever()
"""


class Small(Agent):
    """An agent whose program ends at once, or reads no schema, as often as it is told to."""

    def __init__(self, root: Path, fails: int, misreads: int = 0) -> None:
        self.layout = layout = Layout(root)
        self.spec = decide(layout, Wanted(tables=("imapuidtable",)))
        self.starts_file = layout.root / "starts"
        self.fails, self.misreads = fails, misreads
        super().__init__(layout, self.spec)

    @property
    def starts(self) -> int:
        return len(self.starts_file.read_text(encoding="utf-8"))

    def begin(self) -> None:
        """As the only one of its stack."""
        Agents(self.spec, [self]).start(session=None)

    def _command(self) -> list[str]:
        told = (self.starts_file, self.spec.ports.agent_http, self.fails, self.misreads)
        return [sys.executable, "-c", PROGRAM, *map(str, told)]

    def environment(self, session: Any) -> dict[str, str]:
        return dict(os.environ)


@pytest.fixture(autouse=True)
def no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "lacking", lambda *_: frozenset())
    monkeypatch.setattr(capture, "captured", lambda *_: frozenset())
    monkeypatch.setattr(capture, "switch_on", lambda *_: None)


@pytest.fixture
def agent(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Small]:
    made = Small(tmp_path, request.param)
    yield made
    made.stop()


@pytest.mark.parametrize("agent", [0, 1, MOST_STARTS - 1], indirect=True)
def test_an_agent_that_ends_during_its_start_is_started_again(agent: Small) -> None:
    agent.begin()
    assert agent.pings()
    assert agent.starts == agent.fails + 1


def test_an_agent_that_could_not_read_the_schema_is_started_again(tmp_path: Path) -> None:
    agent = Small(tmp_path, fails=0, misreads=1)
    try:
        agent.begin()
        assert (agent.pings(), agent.starts) == (True, 2)
    finally:
        agent.stop()


@pytest.mark.parametrize("agent", [MOST_STARTS], indirect=True)
def test_an_agent_that_never_comes_up_is_one_line(agent: Small) -> None:
    with pytest.raises(StartError, match=r"ended during its start.*ERROR: a file is gone"):
        agent.begin()
    assert agent.starts == MOST_STARTS


@pytest.mark.parametrize("agent", [0], indirect=True)
def test_who_reads_what_an_agent_sees_while_it_starts_reads_all_of_it(
    agent: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.begin()
    with (agent.layout.run / "agent.tables.json").open(encoding="utf-8") as opened:
        agent.stop()
        monkeypatch.setattr(capture, "captured", lambda *_: frozenset({"a table's id"}))
        agent.begin()
        assert json.load(opened) == []
    assert Agents(agent.spec, [agent]).unseen(session=None) == frozenset()
