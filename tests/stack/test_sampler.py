"""The sampler of a real stream: what it counts of each change, and what a restart leaves of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from checkpoints.clock import now_micros
from reconcilers.words.model import Micros
from streaming.settings import Mode
from tests.stack.conftest import Scenes
from tests.stack.pasts import newest_bookmark
from tests.stack.scenes import Place, Scene, cells, reconcile
from tests.stack.streams import Stream, until

pytestmark = pytest.mark.stack

RIGHT, WRONG = 6, 3


@pytest.fixture(scope="module")
def sampled(scenes: Scenes) -> Iterator[Scene]:
    """A stream that samples each key, and repairs nothing."""

    def observing(config: Path) -> Stream:
        return Stream(config, mode="observe")

    yield from scenes({"sample": {"one_in": 1, "looks_per_second": 1000}}, observing)


def looks(scene: Scene, age: int, *outcomes: str) -> float:
    """How many looks at this age (s) had one of these outcomes in this process."""
    told = partial(scene.metric, "reconciler_sampled_looks_total", system="messages", age=str(age))
    return sum(told(outcome=each) for each in outcomes)


def recorded_at(scene: Scene) -> Micros:
    newest = newest_bookmark(scene, mode=Mode.OBSERVE)
    return 0 if newest is None else newest.recorded_at


def test_looks_are_counted_by_age_also_those_that_a_restart_leaves(sampled: Scene) -> None:
    values = cells(userflags=set())  # one statement, so one change
    for place in (Place() for _ in range(RIGHT)):
        sampled.write_projection(place, {"messageid": place.messageid, **values})
        sampled.write_truth(place, values)
    for place in (Place() for _ in range(WRONG)):
        sampled.write_truth(place, values)
    all_of_them = ("consistent", "inconsistent", "not_looked_at")
    until("all were looked at", lambda: looks(sampled, 10, *all_of_them) == RIGHT + WRONG)
    assert looks(sampled, 10, "inconsistent") <= WRONG
    assert looks(sampled, 10, "consistent") <= RIGHT
    assert looks(sampled, 10, "consistent", "inconsistent") > 0
    counted = now_micros()
    until("a slice is settled after these looks", lambda: recorded_at(sampled) > counted)
    assert sampled.stream.stop() == 0
    sampled.stream.start_watching()
    until("the others follow", lambda: looks(sampled, 60, *all_of_them) == RIGHT + WRONG)
    assert looks(sampled, 10, *all_of_them) == 0, "the first process has counted them"
    known = {**os.environ, "RECONCILE_METRICS__PORT": str(sampled.metrics_port)}
    config = str(sampled.stream.config)
    answer = reconcile("status", "--config", config, environment=known)
    assert "consistent after 60 s, messages: " in answer.stdout, answer
