"""Whether the stream is behind, row by row of the table; and what is told and shown of it."""

from __future__ import annotations

import logging

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.capture.frontier import Times
from reconcilers.limits.behind import Heard, longest_age, why_behind
from reconcilers.limits.breakers import BreakerLimits
from reconcilers.words.model import Kind, Micros
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.behind import BehindWatch, judged_within, longest_age_of
from streaming.pipeline.breakers import BreakerWatch
from streaming.pipeline.slices import Slice
from streaming.settings import Settings
from tests.builders.canaries import TOPIC, echo, frontier_watch, of_slice
from tests.builders.found import suspect_at
from tests.builders.rows import NOW, SECOND, SLOT
from tests.fakes.checkpoints.memory import MemoryJournal

LONGEST: Micros = 100 * SECOND
NODES = ("n1", "n2")
FRESH, OLDEST, OLD = NOW - SECOND, NOW - LONGEST, NOW - LONGEST - 7 * SECOND
NONE_OF_N2 = "no canary of node n2 has come out yet"
OLD_N2 = "node n2 wrote 107 s ago what is not looked at yet"
SKEW: Micros = 22 * SECOND
AHEAD = NOW + SKEW
AHEAD_N1 = "canaries of node n1 are 22 s ahead of our clock"
REST = "the rest of the window is still to be looked at"


@pytest.mark.parametrize(
    ("delay", "window", "usual", "age"),
    [(45, 5, 10, 100), (45, 5, 25, 100), (45, 5, 26, 102), (3, 1, 10, 24), (3, 1, 0.5, 8)],
)
def test_how_old_the_frontier_may_be(delay: float, window: float, usual: float, age: int) -> None:
    settings = (round(each * SECOND) for each in (delay, window, usual))
    assert longest_age(*settings) == age * SECOND


TABLE: dict[str, tuple[Times, tuple[str, ...], bool, str | None]] = {
    # the frontier, the nodes, whether the window is whole; why the stream is behind
    "fresh": ({"n1": FRESH, "n2": FRESH}, NODES, True, None),
    "as old as it may be": ({"n1": FRESH, "n2": OLDEST}, NODES, True, None),
    "older": ({"n1": FRESH, "n2": OLD}, NODES, True, OLD_N2),
    "ahead of our clock": ({"n1": AHEAD - 1, "n2": FRESH}, NODES, True, None),
    "far ahead of our clock": ({"n1": AHEAD, "n2": FRESH}, NODES, True, AHEAD_N1),
    "far ahead, all": ({"n1": AHEAD, "n2": AHEAD}, NODES, True, AHEAD_N1),
    "a dead agent from the start on": ({"n1": FRESH}, NODES, True, NONE_OF_N2),
    "a partition where none has come": ({"n1": FRESH, "n2": -1}, NODES, True, NONE_OF_N2),
    "none since the start": ({"n1": FRESH, "n2": 0}, NODES, True, NONE_OF_N2),
    "a node that left, not forgotten yet": ({"n1": FRESH, "n2": OLD}, ("n1",), True, OLD_N2),
    "nobody writes canaries": ({}, ("n1",), True, "no canary of node n1 has come out yet"),
    "no node is known": ({}, (), True, "no canary has come out yet"),
    "a part of a window": ({"n1": FRESH, "n2": FRESH}, NODES, False, REST),
    "a part of a window, and old": ({"n1": FRESH, "n2": OLD}, NODES, False, OLD_N2),
}


@pytest.mark.parametrize("case", TABLE)
def test_why_the_stream_is_behind(case: str) -> None:
    until, nodes, whole, why = TABLE[case]
    told = why_behind(Heard(until, nodes, whole), NOW, LONGEST, SKEW)
    expected = None if why is None else Waiting(Wait.BEHIND, f"the stream is behind: {why}")
    assert told == expected


# --- slice by slice ------------------------------------------------------------------------------


class Watched:
    """One node's canaries, and slices of the agents' topic on a clock of the test's."""

    def __init__(self) -> None:
        self.now, self._last = NOW, 0
        self.metrics = Metrics(CollectorRegistry())
        self.frontier = frontier_watch(self.metrics, nodes=lambda: ("n1",))
        self.behind = BehindWatch(self.frontier, LONGEST, SKEW, lambda: self.now, self.metrics)

    def hear(self) -> None:
        """Two canaries of this moment."""
        echoes = [echo(self.now - 1, self._last), echo(self.now, self.now - 1)]
        self._last = self.now
        self.frontier.hear(of_slice(*echoes), [(TOPIC, 0)], self.now)

    def at(self, done_before: Micros = NOW) -> bool:
        """Whether it is behind at a slice that was read now."""
        places = {(TOPIC, 0): 1, ("reconciler.suspects", 0): 1}
        heard = self.behind.heard(Slice(places, places, NOW, done_before))
        return self.behind.why(heard) is not None

    @property
    def shown(self) -> float | None:
        labels = {"reason": "behind"}
        return self.metrics.registry.get_sample_value("reconciler_repairs_paused", labels)


def test_until_a_canary_has_come_out_the_stream_is_behind() -> None:
    watched = Watched()
    assert watched.at()
    watched.hear()
    assert not watched.at()


def test_it_is_behind_by_the_clock_though_nothing_waits_in_kafka() -> None:
    watched = Watched()
    watched.hear()
    watched.now += LONGEST
    assert not watched.at()
    watched.now += 1
    assert watched.at()


def test_of_a_window_that_is_cut_all_but_the_last_slice_is_behind() -> None:
    watched = Watched()
    watched.hear()
    assert [watched.at(NOW - SECOND), watched.at(NOW - SECOND), watched.at()] == [True, True, False]
    assert watched.behind.is_over(), "told though it was not asked in between"


def test_that_it_is_over_is_told_once_and_not_before() -> None:
    watched = Watched()
    assert not watched.behind.is_over()
    watched.at()
    assert not watched.behind.is_over()
    watched.hear()
    watched.at()
    assert [watched.behind.is_over(), watched.behind.is_over()] == [True, False]


def test_it_is_shown_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    with caplog.at_level(logging.INFO, "reconciler"):
        watched.at()
        watched.at()
    assert watched.shown == 1
    told = "removals that rest on lineage wait: the stream is behind: no canary of node n1"
    assert [told in each.getMessage() for each in caplog.records] == [True]
    caplog.clear()
    watched.hear()
    with caplog.at_level(logging.INFO, "reconciler"):
        watched.at()
        watched.at()
    assert [each.getMessage() for each in caplog.records] == [
        "the stream is not behind any more: nothing waits for it"
    ]
    assert watched.shown == 0


@pytest.mark.parametrize(
    ("delay", "window", "usual"), [(45, 5, 10), (45, 30, 10), (45, 5, 60), (5, 1, 2)]
)
def test_all_looks_of_one_removal_count_once(delay: float, window: float, usual: float) -> None:
    """A row that the truth never had is judged only when all of before it has come."""
    settings = Settings.model_validate(
        {"stream": {"delay": delay, "window": window}, "canary": {"usual_delay": usual}}
    )
    every, found_at = round((delay + window) * SECOND), round(delay * SECOND)
    unheard = longest_age_of(settings) + round(delay / 2 * SECOND)
    looks = range(found_at, unheard + every + 1, every)
    assert looks[-1] >= unheard
    breakers = BreakerWatch(
        MemoryJournal(lambda: NOW),
        BreakerLimits(),
        Metrics(CollectorRegistry()),
        put_off_for=judged_within(settings),
    )
    suspect = suspect_at(SLOT, Kind.EXTRA_ROW)
    breakers.remember([(suspect.projection, suspect.slot)], NOW + looks[0])
    assert breakers.was_counted(suspect, NOW + looks[-1], breakers.put_off_for)
    assert not breakers.was_counted(suspect, NOW + looks[0] + 120 * SECOND, breakers.once_in)
