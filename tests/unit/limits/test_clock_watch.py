"""The watch on clocks: a pause ends only when the node that caused it is heard to be well."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.words.errors import Overloaded, Unreachable
from reconcilers.words.waiting import Wait, Waiting, why_of
from streaming.monitoring.clocks import EVERY, ClockWatch, OwnTime
from streaming.monitoring.metrics import Metrics
from tests.builders.clocks import Host, OneNode

DELAY_SECONDS = 45.0
GOOD, BAD = 0.1, 30.0
NOBODY = Unreachable("asking 10.0.0.1 for its time: no host answered")

Answer = dict[str, float] | Exception
TraceFunction = Callable[[FrameType, str, Any], Any]


class Cluster:
    """Nodes that answer so, one after the other."""

    def __init__(self, answers: Sequence[Answer], members: str) -> None:
        self._answers, self.members_now = iter(answers), members

    def members(self) -> str:
        return self.members_now

    def clocks(self) -> dict[str, float]:
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def troubles(answers: Sequence[Answer], members: str = "ab") -> list[str | None]:
    """What the watch says after each of these answers; the cluster has these nodes by then."""
    watch = ClockWatch(Cluster(answers, members), DELAY_SECONDS, Metrics(CollectorRegistry()))
    told = []
    for _ in answers:
        watch.measure()
        told.append(why_of(watch.trouble()))
    return told


@pytest.mark.parametrize(("ahead", "named"), [(-22.4, False), (22.5, True), (-22.5, True)])
def test_a_clock_that_differs_by_half_the_delay_is_named(ahead: float, named: bool) -> None:
    (trouble,) = troubles([{"a": GOOD, "b": ahead}])
    assert (trouble is not None) is named
    assert not named or "clock of b" in str(trouble)


def test_a_pause_is_not_lifted_while_the_clocks_are_measured() -> None:
    """A batch asks from a thread of its own: it hears of the pause at each line."""
    watch = ClockWatch(Cluster([{"b": BAD}] * 2, "b"), DELAY_SECONDS, Metrics(CollectorRegistry()))
    watch.measure()
    heard = []

    def at_each_line(frame: FrameType, _event: str, _argument: object) -> TraceFunction:
        heard.append(watch._trouble)
        return at_each_line

    before = sys.gettrace()
    sys.settrace(at_each_line)
    try:
        watch.measure()
    finally:
        sys.settrace(before)
    assert len(heard) > 5
    assert None not in heard


@pytest.mark.parametrize("answer", [{"a": GOOD}, NOBODY, Overloaded("not now")], ids=str)
def test_a_pause_is_not_lifted_when_the_bad_node_stops_answering(answer: Answer) -> None:
    before, after = troubles([{"a": GOOD, "b": BAD}, answer])
    assert before is not None
    assert after == before


def test_a_pause_is_lifted_when_that_node_answers_well() -> None:
    answers: list[Answer] = [{"a": GOOD, "b": BAD}, NOBODY, {"a": GOOD}, {"b": GOOD}]
    assert troubles(answers)[-1] is None


def test_a_node_that_has_left_is_forgotten() -> None:
    assert troubles([{"a": GOOD, "b": BAD}, {"a": GOOD}], members="a")[-1] is None


def test_the_clock_of_a_node_that_has_left_is_shown_no_more() -> None:
    cluster = Cluster([{"a": GOOD, "b": BAD}, {"a": GOOD}, {"a": GOOD}], "ab")
    metrics = Metrics(CollectorRegistry())
    watch = ClockWatch(cluster, DELAY_SECONDS, metrics)
    shown = []
    for members in ("ab", "ab", "a"):
        cluster.members_now = members
        watch.measure()
        name, of_b = "reconciler_clock_skew_seconds", {"source": "b"}
        shown.append(metrics.registry.get_sample_value(name, of_b))
    assert shown == [BAD, BAD, None]


def test_a_node_that_does_not_answer_keeps_nobody_from_repairing() -> None:
    assert troubles([{"a": GOOD, "b": GOOD}, {"a": GOOD}, NOBODY]) == [None, None, None]


# --- our own clock


def on_own_clock(own: list[float], cluster: Cluster) -> ClockWatch:
    metrics = Metrics(CollectorRegistry())
    return ClockWatch(cluster, DELAY_SECONDS, metrics, lambda: OwnTime(own[0], 0))


@pytest.mark.parametrize("step", [3600.0, -3600.0, 1.5])
def test_when_our_own_clock_steps_repairs_are_held_until_the_nodes_are_measured_anew(
    step: float,
) -> None:
    own = [1000.0]
    watch = on_own_clock(own, Cluster([{"a": 0.0}] * 2, "a"))
    watch.measure()
    own[0] += 0.9
    assert watch.trouble() is None
    own[0] += step
    assert f"our own clock has moved by {step + 0.9:.1f} s" in str(watch.trouble())
    watch.measure()
    assert watch.trouble() is None


def test_a_step_while_the_nodes_are_asked_is_seen() -> None:
    own = [1000.0]

    class Stepping(Cluster):
        def clocks(self) -> dict[str, float]:
            own[0] += 60
            return super().clocks()

    watch = on_own_clock(own, Stepping([{"a": 0.0}], "a"))
    watch.measure()
    assert watch.trouble() is not None


def test_while_no_node_answers_a_step_stays_known() -> None:
    own = [1000.0]
    watch = on_own_clock(own, Cluster([Unreachable("gone")], "a"))
    own[0] += 60
    watch.measure()
    assert watch.trouble() is not None


def test_a_step_is_told_apart_from_nodes_whose_clocks_differ() -> None:
    """A worker that knows of a step has measured nothing since; of a node it has."""
    node = OneNode(Host())
    watch = node.watch()
    node.host.ahead += 60
    assert "our own clock has moved by 60.0 s" in str(watch.moved())
    watch.measure()
    assert watch.moved() is None
    told = "the clock of a differs from ours by -60.0 s"
    assert watch.trouble() == Waiting(Wait.CLOCKS, told)


# --- when it is asked for


def test_what_was_measured_is_believed_for_some_time() -> None:
    node = OneNode(Host())
    watch = node.watch()
    watch.measure_if_due()
    node.host.steady += EVERY
    watch.measure_if_due()
    assert node.asked == 1
    node.host.steady += 0.1
    watch.measure_if_due()
    assert node.asked == 2


@pytest.mark.parametrize("step", [60.0, -60.0, 1.5])
def test_after_a_step_it_is_measured_at_once(step: float) -> None:
    node = OneNode(Host())
    watch = node.watch()
    watch.measure_if_due()
    node.host.ahead += step
    watch.measure_if_due()
    assert node.asked == 2
    assert watch.moved() is None


def test_where_no_node_answers_a_step_stays_known_to_a_worker() -> None:
    node = OneNode(Host())
    watch = node.watch()
    watch.measure_if_due()
    node.host.ahead, node.silent = 60.0, True
    watch.measure_if_due()
    assert watch.moved() is not None
