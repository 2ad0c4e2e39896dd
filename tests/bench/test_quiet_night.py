"""CPU time of the driver for a quiet night's canaries, with and without one that is missing.

No servers, some seconds.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence

import pytest

from reconcilers.capture.frontier import Canary, Echo
from tests.bench.report import publish, table
from tests.builders.canaries import TOPIC, frontier_watch, of_slice
from tests.builders.rows import NOW, SECOND

pytestmark = pytest.mark.bench

LANES, NIGHT_S, SLICE, ROUNDS = 24, 8 * 3600, 100_000, 5
PLACES = [(TOPIC, number) for number in range(LANES)]
MISSING_S = 60
"""So long after the night's beginning the missing canary was written."""


def night(missing: bool) -> list[list[Echo]]:
    """The echoes of a night in slices, second by second through all lanes."""
    echoes = [
        Echo(Canary("n1", at, at - SECOND, idle=SECOND, at=at), TOPIC, lane)
        for second in range(NIGHT_S)
        for at in (NOW + second * SECOND,)
        for lane in range(LANES)
        if not (missing and second == MISSING_S)
    ]
    return [echoes[at : at + SLICE] for at in range(0, len(echoes), SLICE)]


def seconds_of(slices: Sequence[Sequence[Echo]]) -> list[float]:
    """CPU time of each folded slice: what it proves if admitted, then what is heard at its end."""
    watch = frontier_watch(nodes=lambda: ("n1",))
    spent = []
    for number, came in enumerate(slices):
        echoes = of_slice(*came)
        gc.collect()
        begun = time.process_time()
        watch.until_with(echoes, PLACES)
        watch.hear(echoes, PLACES, NOW + number)
        watch.reached()
        spent.append(time.process_time() - begun)
    return spent


def test_a_quiet_night() -> None:
    nights = {"all came": night(missing=False), "one is missing": night(missing=True)}
    best: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, slices in nights.items():
            spent = seconds_of(slices)
            best[name] = [min(each) for each in zip(best.get(name, spent), spent, strict=True)]
    whole, gap = best.values()
    rows: list[tuple[object, ...]] = [
        (f"{number + 1}", 1_000 * one, 1_000 * other, other / one)
        for number, (one, other) in enumerate(zip(whole, gap, strict=True))
    ]
    rows.append(("all", 1_000 * sum(whole), 1_000 * sum(gap), sum(gap) / sum(whole)))
    publish(
        "A quiet night's canaries, without servers",
        f"CPU time of the driver, ms a slice of {SLICE:,} canaries: {LANES} lanes, a canary a"
        f" second for {NIGHT_S // 3600} hours; the frontier is asked for when the slice is"
        f" admitted and heard when it ends. Once all canaries came, once that of second"
        f" {MISSING_S} came in no lane; best of {ROUNDS} rounds in turns. The aim for the ratio is"
        " at most 1.2. A test counts the steps (`tests/unit/capture/test_frontier_cost.py`).",
        table(("slice", *best, "ratio"), rows),
    )
