"""CPU of the driver for a slice of a large cluster, without servers: a minute or two."""

from __future__ import annotations

import gc
import pickle
import statistics
import time
from collections.abc import Callable
from uuid import UUID

import pytest

from reconcilers.capture.frontier import Canary, Echo
from reconcilers.limits.gate import Admission
from reconcilers.words.model import Slot
from streaming.pipeline.suspect_cap import beyond, split
from streaming.pipeline.worker import BatchLook, each_once, read_looks
from tests.bench.report import publish, table
from tests.builders.canaries import TOPIC, frontier_watch, of_slice
from tests.builders.found import suspect_at
from tests.builders.rows import FAMILY, NOW, SECOND
from tests.fakes.checkpoints.holds import MemoryHolds
from tests.unit.stream.test_batches import PIECE, MemoryPorts, started

pytestmark = pytest.mark.bench

SUSPECTS, SHARES, OF_A_SHARE = 250_000, 16, 1_000
NODES, PARTITIONS, CANARIES, ROUNDS = 100, 64, 5, 5
NAMES = [f"{number:08}-0000-4000-8000-000000000000" for number in range(NODES)]
PLACES = [(TOPIC, number) for number in range(PARTITIONS)]


def cpu_ms(of: Callable[[], object]) -> float:
    """CPU time of this process for one call."""
    gc.collect()
    begun = time.process_time()
    of()
    return 1_000 * (time.process_time() - begun)


def share(number: int, most: int | None) -> bytes:
    """What one of `SHARES` workers returns of an incident: all its rows differ."""
    first = number * SUSPECTS // SHARES
    found = [
        suspect_at(Slot(UUID(int=first + at), at), sources=[UUID(int=2**100 + at)], oldest=NOW)
        for at in range(SUSPECTS // SHARES)
    ]
    travel, left = split(each_once(found), most or len(found))
    counted = beyond(FAMILY, MemoryHolds(), left)
    return pickle.dumps(BatchLook(travel, SUSPECTS // SHARES, beyond=counted))


def incident(most: int | None) -> tuple[float, float, str]:
    """MB that travel, CPU (ms) until it is admitted, and why the breaker opened."""
    shares = [share(number, most) for number in range(SHARES)]
    decisions = started(MemoryPorts())
    admitted: list[Admission] = []
    spent = cpu_ms(lambda: admitted.append(decisions.admit(read_looks(shares), PIECE)))
    return sum(map(len, shares)) / 1e6, spent, str(admitted[0].repairs_wait)


def test_suspects_of_an_incident() -> None:
    rows = [(name, *incident(most)) for name, most in (("all", None), ("capped", OF_A_SHARE))]
    publish(
        "Suspects of an incident in the driver",
        f"CPU time of the driver until a slice is admitted, without any server: {SUSPECTS:,} rows"
        f" differ, in {SHARES} shares. *All*: each suspect travels, as before; *capped*:"
        f" {SHARES * OF_A_SHARE:,} travel, {OF_A_SHARE:,} of a share, and the count of the others.",
        table(("suspects", "MB", "CPU, ms", "breaker"), rows),
    )
    assert len({why for *_, why in rows}) == 1


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
