"""What is made of the canaries that come back: what is proven, shown, and said to be lost."""

from __future__ import annotations

import logging

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Micros
from streaming.canary.watch import FrontierWatch
from streaming.monitoring.metrics import Metrics
from tests.builders.canaries import RULES, TOPIC, echo, frontier_watch, of_slice, reached
from tests.builders.rows import NOW, SECOND

PLACES = [(TOPIC, 0), ("reconciler.suspects", 0)]


class Watched:
    """Two nodes; what is lost of them, and shown."""

    def __init__(self) -> None:
        self.nodes = {"n1", "n2"}
        self.lost: list[Micros] = []
        self.why: list[str] = []
        self.metrics = Metrics(CollectorRegistry())
        self.watch: FrontierWatch = frontier_watch(self.metrics, self.lose, lambda: self.nodes)

    def lose(self, until: Micros, why: str) -> None:
        self.lost.append(until)
        self.why.append(why)

    def shown(self, metric: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"reconciler_{metric}", labels)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_what_is_proven_in_the_agents_topic_is_told(watched: Watched) -> None:
    found = watched.watch.hear(of_slice(echo(10, 0), echo(20, 10)), PLACES, NOW)
    assert found == {"n1": 10}


def test_the_frontier_is_the_oldest_of_all_nodes(watched: Watched) -> None:
    watched.watch.hear(
        of_slice(echo(NOW - SECOND, 0), echo(NOW - 5 * SECOND, 0, "n2")), PLACES, NOW
    )
    assert watched.shown("frontier_timestamp_seconds") == (NOW - 5 * SECOND) / SECOND
    assert watched.shown("capture_delay_seconds", node="n1") == 1
    assert watched.shown("capture_delay_seconds", node="n2") == 5


def test_before_any_canary_nothing_is_shown(watched: Watched) -> None:
    assert watched.watch.hear([], PLACES, NOW) == {}
    assert watched.shown("frontier_timestamp_seconds") is None
    assert watched.shown("capture_delay_seconds", node="n1") is None


def test_a_node_that_was_never_heard_is_shown_after_a_while(watched: Watched) -> None:
    watched.watch.hear([], PLACES, NOW)
    later = NOW + RULES.lost_after
    watched.watch.hear(of_slice(echo(later, 0)), PLACES, later)
    assert watched.shown("capture_delay_seconds", node="n2") is None
    later += SECOND
    watched.watch.hear(of_slice(echo(later, later - SECOND)), PLACES, later)
    assert watched.shown("capture_delay_seconds", node="n1") == 0
    assert watched.shown("capture_delay_seconds", node="n2") == (later - NOW) / SECOND
    assert watched.shown("frontier_timestamp_seconds") == later / SECOND


def test_a_node_that_was_never_heard_and_has_left_is_not_shown(watched: Watched) -> None:
    watched.watch.hear([], PLACES, NOW)
    watched.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    assert watched.shown("capture_delay_seconds", node="n2") is not None
    watched.nodes = {"n1"}
    watched.watch.hear([], PLACES, NOW + RULES.lost_after + 2)
    watched.watch.hear([], PLACES, NOW + 2 * RULES.lost_after + 3)
    assert watched.shown("capture_delay_seconds", node="n2") is None
    assert watched.shown("capture_delay_seconds", node="n1") is not None


def test_a_node_whose_clock_is_ahead_is_not_early(watched: Watched) -> None:
    watched.watch.hear(of_slice(echo(NOW + SECOND, 0)), PLACES, NOW)
    assert watched.shown("capture_delay_seconds", node="n1") == 0


def test_what_may_be_lost_is_said_and_memory_begins_after_it(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "reconciler"):
        watched.watch.hear(of_slice(echo(10, 0), echo(30, 20)), PLACES, NOW)
        watched.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    assert watched.lost == [30]
    assert "events may be lost: node n1, james/0: 0 s whose canaries" in caplog.text


def test_a_node_that_left_is_not_shown_and_holds_nothing_up(watched: Watched) -> None:
    watched.watch.hear(of_slice(echo(NOW, 0), echo(10, 0, "n2")), PLACES, NOW)
    watched.nodes = {"n1"}
    watched.watch.hear([], PLACES, NOW)
    assert watched.shown("capture_delay_seconds", node="n2") is not None
    later = NOW + RULES.lost_after + 1
    assert watched.watch.hear(of_slice(echo(NOW + 1, NOW)), PLACES, later) == {"n1": NOW}
    assert watched.shown("capture_delay_seconds", node="n2") is None
    assert watched.shown("frontier_timestamp_seconds") == (NOW + 1) / SECOND


def test_what_was_heard_is_gone_on_with_after_a_restart(watched: Watched) -> None:
    watched.watch.hear(of_slice(echo(10, 0)), PLACES, NOW)
    again = Watched()
    again.watch.begin(watched.watch.reached())
    again.watch.hear(of_slice(echo(30, 20)), PLACES, NOW)
    again.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    assert again.lost == [30]


def test_a_process_that_is_restarted_again_and_again_reports_a_loss(watched: Watched) -> None:
    """Each ends before the time is over; together they have waited long enough, and once."""
    since, step = NOW, RULES.lost_after * 9 // 10
    watched.watch.hear(of_slice(echo(10, 0)), PLACES, NOW)
    lost: list[Micros] = []
    for restart in range(4):
        process = Watched()
        process.watch.begin(watched.watch.reached())
        last = 30 + 10 * restart
        process.watch.hear(of_slice(echo(last, last - 10)), PLACES, since)
        since += step
        process.watch.hear([], PLACES, since)
        lost += process.lost
        watched = process
    assert lost == [40]


def test_while_nothing_comes_after_a_restart_nothing_is_lost(watched: Watched) -> None:
    """It is known since when one is missing, and not yet up to where."""
    watched.watch.hear(of_slice(echo(10, 0), echo(30, 20)), PLACES, NOW)
    again = Watched()
    again.watch.begin(watched.watch.reached())
    again.watch.hear([], PLACES, NOW + 2 * RULES.lost_after)
    assert again.lost == []
    again.watch.hear(of_slice(echo(40, 30)), PLACES, NOW + 2 * RULES.lost_after)
    assert again.lost == [40]


def test_one_that_came_before_the_restart_is_not_waited_for_after_it(watched: Watched) -> None:
    watched.watch.hear(of_slice(echo(10, 0), echo(30, 20)), PLACES, NOW)
    watched.watch.hear(of_slice(echo(20, 10)), PLACES, NOW)
    again = Watched()
    again.watch.begin(watched.watch.reached())
    again.watch.hear(of_slice(echo(50, 40)), PLACES, NOW + 2 * RULES.lost_after)
    assert again.lost == []


def test_at_the_very_start_no_time_has_passed_for_what_is_missing(watched: Watched) -> None:
    """The first slice of a backlog does not tell up to when all was looked at."""
    watched.watch.hear(of_slice(echo(10, 0), echo(30, 20)), PLACES, 0)
    watched.watch.hear([], PLACES, NOW)
    watched.watch.hear([], PLACES, NOW + RULES.lost_after)
    assert watched.lost == []
    watched.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    assert watched.lost == [30]


def test_a_clock_that_went_back_over_a_restart_keeps_nothing_waiting_longer(
    watched: Watched,
) -> None:
    year = 365 * 86_400 * SECOND
    watched.watch.hear(of_slice(echo(10, 0), echo(30, 20)), PLACES, NOW + year)
    again = Watched()
    again.watch.begin(watched.watch.reached())
    again.watch.hear(of_slice(echo(40, 30)), PLACES, NOW)
    again.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    assert again.lost == [40]


def test_a_node_that_is_not_told_of_for_a_moment_is_not_forgotten(watched: Watched) -> None:
    watched.watch.hear(of_slice(echo(10, 0)), PLACES, NOW)
    watched.nodes = set()
    watched.watch.hear([], PLACES, NOW)
    watched.nodes = {"n1"}
    watched.watch.hear(of_slice(echo(30, 20)), PLACES, NOW + RULES.lost_after)
    watched.nodes = set()
    watched.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    assert watched.watch.reached() == {("n1", TOPIC, 0): reached(10, NOW + RULES.lost_after)}


def test_of_several_losses_memory_begins_after_the_last(watched: Watched) -> None:
    gaps = [echo(10, 0), echo(30, 20), echo(10, 0, "n2"), echo(50, 40, "n2")]
    watched.watch.hear(of_slice(*gaps), PLACES, NOW)
    watched.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    assert watched.lost == [50]
    (why,) = watched.why
    assert why.startswith(f"events may be lost: node n1, {TOPIC}/0: 0 s whose canaries")
    assert f"; node n2, {TOPIC}/0: " in why


def test_a_loss_that_could_not_be_told_is_told_the_next_time(watched: Watched) -> None:
    tell, fails = watched.watch.events_lost, [Unreachable("no host answered")]

    def failing(until: Micros, why: str) -> None:
        if fails:
            raise fails.pop()
        tell(until, why)

    watched.watch.events_lost = failing
    watched.watch.hear(of_slice(echo(10, 0), echo(30, 20)), PLACES, NOW)
    with pytest.raises(Unreachable):
        watched.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    watched.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    watched.watch.hear([], PLACES, NOW + RULES.lost_after + 1)
    assert watched.lost == [30]


def test_while_it_is_not_known_what_was_looked_at_the_time_before_counts(watched: Watched) -> None:
    """After each start; else what is missing would be lost with the next slice."""
    watched.watch.hear(of_slice(echo(NOW - SECOND, 0)), PLACES, NOW)
    watched.watch.hear(of_slice(echo(NOW + 2, NOW + 1)), PLACES, 0)
    watched.watch.hear([], PLACES, NOW + 1)
    assert watched.lost == []
    assert watched.shown("capture_delay_seconds", node="n1") == pytest.approx(1, abs=0.1)


def test_at_the_very_start_no_delay_is_shown(watched: Watched) -> None:
    watched.watch.hear(of_slice(echo(NOW, 0)), PLACES, 0)
    assert watched.shown("capture_delay_seconds", node="n1") is None


def test_canaries_that_were_lost_with_known_records_are_not_waited_for(watched: Watched) -> None:
    """A topic was made anew: 20 and 30 were in the old one, unread."""
    watched.watch.begin({("n1", TOPIC, 0): reached(10)})
    watched.watch.begin_anew([(TOPIC, 0)])
    assert watched.watch.hear(of_slice(echo(40, 30), echo(50, 40)), PLACES, NOW) == {"n1": 40}
    assert watched.lost == []


def test_in_other_partitions_they_are(watched: Watched) -> None:
    places = [(TOPIC, 0), (TOPIC, 1)]
    watched.watch.begin({("n1", TOPIC, 0): reached(10), ("n1", TOPIC, 1): reached(10)})
    watched.watch.begin_anew([(TOPIC, 0)])
    heard = [echo(40, 30), echo(50, 40), echo(40, 30, partition=1), echo(50, 40, partition=1)]
    assert watched.watch.hear(of_slice(*heard), places, NOW) == {"n1": 0}
    watched.watch.hear([], places, NOW + RULES.lost_after + 1)
    assert watched.lost == [40]
