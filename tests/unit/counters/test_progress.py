"""Counters that stand still are not silent."""

import logging

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.declared.tallies import MAILBOX_TALLIES
from streaming.counters.progress import STANDSTILL, CounterProgress
from streaming.monitoring.metrics import Metrics

TALLY = MAILBOX_TALLIES[0]


class Watched:
    """The progress of a counting thread, and what it logs."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.WARNING, logger="reconciler")
        self.now, self.caplog = 1_000.0, caplog
        self.metrics = Metrics(CollectorRegistry())
        self.progress = CounterProgress(self.metrics, lambda: self.now)
        self.progress.turn(waiting=3)

    def after(self, seconds: float, waiting: int = 3) -> list[str]:
        """What is said then."""
        self.caplog.clear()
        self.now += seconds
        self.progress.turn(waiting)
        return [record.message for record in self.caplog.records]

    def shown(self, metric: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"reconciler_{metric}", labels)


@pytest.fixture
def watched(caplog: pytest.LogCaptureFixture) -> Watched:
    return Watched(caplog)


def test_while_observations_count_nothing_is_said(watched: Watched) -> None:
    for outcome in ("agrees", "unsure", "wrong"):
        assert watched.after(STANDSTILL - 1) == []
        watched.progress.observed(TALLY.name, outcome, 1)
    assert watched.after(STANDSTILL - 1) == []
    assert watched.shown("tally_looks_total", tally=TALLY.name, outcome="unsure") == 1


def test_without_one_that_counts_it_is_said_why_and_again_after_as_long(watched: Watched) -> None:
    for outcome in ("behind", "moved", "behind"):
        watched.progress.observed(TALLY.name, outcome, 1)
    said = "no counter was judged for 30 minutes, 3 wait; observations: 2 behind, 1 moved"
    assert watched.after(STANDSTILL) == [said]
    assert watched.after(STANDSTILL - 1) == []
    assert watched.after(1) == [
        "no counter was judged for 30 minutes, 3 wait; observations: none ended"
    ]


def test_where_nothing_waits_there_is_nothing_to_say(watched: Watched) -> None:
    assert watched.after(STANDSTILL, waiting=0) == []
    assert watched.after(STANDSTILL - 1, waiting=5) == []
    assert watched.shown("tallies_waiting") == 5


def test_what_became_of_observations_before_a_rest_is_not_told_after_it(watched: Watched) -> None:
    watched.progress.observed(TALLY.name, "behind", 1)
    assert watched.after(1, waiting=0) == []
    (said,) = watched.after(STANDSTILL)
    assert said.endswith("observations: none ended")


def test_each_turn_shows_that_the_thread_lives(watched: Watched) -> None:
    assert (watched.shown("tally_turn_timestamp_seconds") or 0) > 0
