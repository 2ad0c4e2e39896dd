"""How far a node's clock is ahead: of several answers, the one that came soonest counts."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cassandra.cluster import Session

from streaming.tables import Nodes

NOW, AHEAD = 1_000.0, 0.5


class OneNode:
    """A node whose clock is ahead; each answer is given at once, and arrives when it arrives."""

    def __init__(self, ways_back: list[float]) -> None:
        self.time = NOW
        self.ways_back = ways_back
        self.ahead = AHEAD
        self.newest_uuid = 0.0
        host = SimpleNamespace(address="n1")
        self.cluster = SimpleNamespace(metadata=SimpleNamespace(all_hosts=lambda: [host]))

    def execute(self, query: str, host: Any) -> "OneNode":
        assert host.address == "n1"
        clock = self.time + self.ahead
        self.newest_uuid = max(self.newest_uuid, clock)
        self.answer = {"now": (self.newest_uuid if "now()" in query else clock) * 1000}
        self.time += self.ways_back.pop(0)
        return self

    def one(self) -> dict[str, float]:
        return self.answer


def clocks(node: OneNode, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    monkeypatch.setattr(time, "time", lambda: node.time)
    return Nodes(cast(Session, node)).clocks()


def test_an_answer_that_comes_at_once_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    node = OneNode([0.01, 9.0])
    assert clocks(node, monkeypatch) == {"n1": pytest.approx(AHEAD - 0.005)}
    assert node.ways_back == [9.0], "asked once"


def test_of_late_answers_the_soonest_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    node = OneNode([4.0, 0.4, 2.0, 0.0])
    assert clocks(node, monkeypatch) == {"n1": pytest.approx(AHEAD - 0.2)}
    assert node.ways_back == [0.0], "asked three times"


def test_a_clock_that_is_set_back_is_seen_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cassandra's ``now()`` makes a time-based UUID, and none is older than the one before."""
    node = OneNode([0.0, 0.0])
    clocks(node, monkeypatch)
    node.ahead = AHEAD - 4
    assert clocks(node, monkeypatch) == {"n1": pytest.approx(AHEAD - 4)}
