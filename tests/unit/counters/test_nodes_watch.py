"""While replicas may differ no counter is corrected, and some time after."""

from __future__ import annotations

import pytest

from reconcilers.words.errors import Unreachable
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.nodes import NodesWatch
from tests.builders.failing import unreachable

PAUSE = 600.0


class Cluster:
    """Which nodes are down, and which hold hints; seconds pass by hand."""

    def __init__(self) -> None:
        self.down: list[str] = []
        self.hints: list[str] = []
        self.now = 0.0
        self.watch = NodesWatch(self, pause=PAUSE, clock=lambda: self.now)

    def away(self) -> list[str]:
        return self.down

    def with_hints(self) -> list[str]:
        return self.hints


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_all_is_well_without_a_sign_to_the_contrary(cluster: Cluster) -> None:
    assert cluster.watch.trouble() is None


def test_a_node_that_is_down_is_named(cluster: Cluster) -> None:
    cluster.down = ["10.0.0.2", "10.0.0.3"]
    told = cluster.watch.trouble()
    assert told == Waiting(Wait.NODE_AWAY, "node 10.0.0.2, 10.0.0.3 is down")


def test_hints_that_wait_are_told(cluster: Cluster) -> None:
    cluster.hints = ["10.0.0.1"]
    assert str(cluster.watch.trouble()) == "hints are pending on node 10.0.0.1"


@pytest.mark.parametrize("sign", ["down", "hints"])
def test_some_time_has_to_pass_after_an_outage(cluster: Cluster, sign: str) -> None:
    setattr(cluster, sign, ["10.0.0.2"])
    cluster.watch.trouble()
    setattr(cluster, sign, [])
    cluster.now += PAUSE - 1
    assert "less than 600 s ago" in str(cluster.watch.trouble())
    cluster.now += 1
    assert cluster.watch.trouble() is None


def test_the_time_counts_from_the_last_sign(cluster: Cluster) -> None:
    for _ in range(3):
        cluster.hints = ["10.0.0.1"]
        cluster.watch.trouble()
        cluster.hints = []
        cluster.now += PAUSE - 1
        assert cluster.watch.trouble() is not None


def test_who_cannot_be_asked_is_not_taken_for_well(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "with_hints", unreachable)
    with pytest.raises(Unreachable):
        cluster.watch.trouble()
