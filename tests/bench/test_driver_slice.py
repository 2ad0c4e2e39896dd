"""CPU of the driver for a slice of a large cluster, without servers: a minute or two."""

from __future__ import annotations

import gc
import pickle
import statistics
import time
from collections.abc import Callable

import pytest

from reconcilers.capture.frontier import Canary, Echo
from tests.bench.report import publish, table
from tests.builders.canaries import TOPIC, frontier_watch, of_slice
from tests.builders.rows import NOW, SECOND

pytestmark = pytest.mark.bench

NODES, PARTITIONS, CANARIES, ROUNDS = 100, 64, 5, 5
NAMES = [f"{number:08}-0000-4000-8000-000000000000" for number in range(NODES)]
PLACES = [(TOPIC, number) for number in range(PARTITIONS)]


def cpu_ms(of: Callable[[], object]) -> float:
    """CPU time of this process for one call."""
    gc.collect()
    begun = time.process_time()
    of()
    return 1_000 * (time.process_time() - begun)


def echoes(number: int) -> list[Echo]:
    """Those of a slice of `CANARIES` seconds, in the order of their offsets."""
    return [
        Echo(Canary(node, at, at - SECOND, idle=SECOND, at=at), TOPIC, partition)
        for second in range(CANARIES)
        for at in (NOW + (number * CANARIES + second) * SECOND,)
        for node in NAMES
        for partition in range(PARTITIONS)
    ]


def test_canaries_of_a_slice() -> None:
    watch = frontier_watch(nodes=lambda: NAMES)
    spent: list[tuple[float, float, float]] = []
    sizes = [0]
    for number in range(ROUNDS + 1):
        pickled = pickle.dumps(of_slice(*echoes(number)))
        sizes.append(len(pickled))
        came = pickle.loads(pickled)
        spent.append(
            (
                cpu_ms(lambda: pickle.loads(pickled)),  # noqa: B023
                cpu_ms(lambda: watch.until_with(came, PLACES)),  # noqa: B023
                cpu_ms(lambda: watch.hear(came, PLACES, NOW)),  # noqa: B023
            )
        )
    rows = [statistics.median(each) for each in zip(*spent[1:], strict=True)]
    publish(
        "Canaries of a slice in the driver",
        f"CPU time of the driver, ms a slice, without any server: {NODES} nodes, {PARTITIONS}"
        f" partitions, {CANARIES} canaries in each of {NODES * PARTITIONS:,} lanes, folded by a"
        f" worker ({max(sizes) / 1e6:.1f} MB); median of {ROUNDS} slices.",
        table(
            ("unpickled", "asked at admission", "heard at the end", "sum"),
            [(*rows, sum(rows))],
        ),
    )
