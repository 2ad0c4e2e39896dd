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

pytestmark = [pytest.mark.stack, pytest.mark.long(part="loads")]

RIGHT, WRONG = 6, 3
MOST_ROUNDS = 20
"""Against a sampler that never looks."""


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


ALL_OF_THEM = ("consistent", "inconsistent", "not_looked_at")


def changed(scene: Scene) -> None:
    """Some rows that are right and some that are wrong, each by one change."""
    values = cells(userflags=set())  # one statement
    for place in (Place() for _ in range(RIGHT)):
        scene.write_projection(place, {"messageid": place.messageid, **values})
        scene.write_truth(place, values)
    for place in (Place() for _ in range(WRONG)):
        scene.write_truth(place, values)


def changed_until_one_is_looked_at_in_time(scene: Scene) -> int:
    """How often; on a busy machine looks at 10 s come too late, and are not made."""
    rounds = 0
    while not looks(scene, 10, "consistent", "inconsistent"):
        rounds += 1
        changed(scene)
        number = rounds * (RIGHT + WRONG)
        until("all were looked at", lambda: looks(scene, 10, *ALL_OF_THEM) == number)  # noqa: B023
        assert rounds < MOST_ROUNDS
    return rounds


def test_looks_are_counted_by_age_also_those_that_a_restart_leaves(sampled: Scene) -> None:
    rounds = changed_until_one_is_looked_at_in_time(sampled)
    assert looks(sampled, 10, "inconsistent") <= rounds * WRONG
    assert looks(sampled, 10, "consistent") <= rounds * RIGHT
    counted = now_micros()
    until("a slice is settled after these looks", lambda: recorded_at(sampled) > counted)
    before = looks(sampled, 60, *ALL_OF_THEM)
    assert sampled.stream.stop() == 0
    sampled.stream.start_watching()
    left = rounds * (RIGHT + WRONG) - before
    until("the others follow", lambda: looks(sampled, 60, *ALL_OF_THEM) >= left)
    assert looks(sampled, 10, *ALL_OF_THEM) == 0, "the first process has counted them"
    known = {**os.environ, "RECONCILE_METRICS__PORT": str(sampled.metrics_port)}
    config = str(sampled.stream.config)
    answer = reconcile("status", "--config", config, environment=known)
    assert "consistent after 60 s, messages: " in answer.stdout, answer
