"""Counting begins anew after a fault, later each time, and hears of what comes then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.words.errors import Unreachable
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.thread import FIRST_PAUSE, LIVES, LONGEST_PAUSE, CountingThread
from streaming.monitoring.metrics import Metrics
from tests.builders.failing import unreachable
from tests.fakes.pausing import Pauses

CAME = BatchSummary()


@dataclass
class Faulty:
    """A loop that ends at once, as after a fault that it has logged."""

    lives: Callable[[], None] = lambda: None
    heard: list[BatchSummary] = field(default_factory=list)

    def take(self, batch: BatchSummary) -> None:
        self.heard.append(batch)

    def run(self, stop: Event) -> None:
        self.lives()


def restarts(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("reconciler_tally_restarts_total")


def test_it_begins_anew_after_a_pause_that_grows_to_a_limit() -> None:
    metrics, built = Metrics(CollectorRegistry()), list[Faulty]()

    def build() -> Faulty:
        built.append(Faulty())
        return built[-1]

    counting, stop = CountingThread(build, metrics), Pauses(12)
    counting.run(stop)
    assert stop.taken[:4] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE]
    assert stop.taken[-1] == LONGEST_PAUSE
    assert len(built) == 13
    assert restarts(metrics) == 13
    counting.take(CAME)
    assert [len(each.heard) for each in built] == [0] * 12 + [1]


def test_one_that_lived_long_begins_anew_soon() -> None:
    now = [0.0]

    def live() -> None:
        now[0] += LIVES + 1

    stop = Pauses(3)
    counting = CountingThread(
        lambda: Faulty(live), Metrics(CollectorRegistry()), clock=lambda: now[0]
    )
    counting.run(stop)
    assert stop.taken == [FIRST_PAUSE] * 4


def test_what_cannot_be_opened_is_told_at_the_start_and_tried_again_later() -> None:
    with pytest.raises(Unreachable):
        CountingThread(unreachable, Metrics(CollectorRegistry()))
    metrics, stop = Metrics(CollectorRegistry()), Pauses(3)
    counting = CountingThread(Faulty, metrics)
    counting.build = unreachable
    counting.run(stop)
    assert len(stop.taken) == 4
    assert restarts(metrics) == 1


def test_it_ends_with_its_loop_when_told_to() -> None:
    stop, metrics = Event(), Metrics(CollectorRegistry())
    counting = CountingThread(lambda: Faulty(stop.set), metrics)
    counting.run(stop)
    assert restarts(metrics) == 0
