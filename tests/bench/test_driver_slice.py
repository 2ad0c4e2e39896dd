"""CPU of the driver for a slice of a large cluster, without servers: a minute or two."""

from __future__ import annotations

import gc
import logging
import os
import pickle
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO
from uuid import UUID

import pytest

from reconcilers.capture.frontier import Canary, Echo
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action, State
from reconcilers.words.model import Slot, Suspect
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.logs import JsonLines
from streaming.pipeline.suspect_cap import MOST, Cap, left_out, split
from streaming.pipeline.suspects import each_once
from streaming.pipeline.worker import BatchLook, read_looks
from streaming.settings import RepairSettings
from streaming.steps.outcome import Outcome, Repaired
from tests.bench.report import publish, table
from tests.builders.canaries import TOPIC, frontier_watch, of_slice
from tests.builders.found import finding_at, suspect_at
from tests.builders.rows import FAMILY, NOW, SECOND
from tests.fakes.checkpoints.holds import MemoryHolds
from tests.unit.stream.test_batches import PIECE, MemoryPorts, started

pytestmark = pytest.mark.bench

SUSPECTS, SHARES = 250_000, 16
BELIEVED = RepairSettings().suspects_per_minute
NODES, PARTITIONS, CANARIES, ROUNDS = 100, 64, 5, 5
NAMES = [f"{number:08}-0000-4000-8000-000000000000" for number in range(NODES)]
PLACES = [(TOPIC, number) for number in range(PARTITIONS)]


def cpu_ms(of: Callable[[], object]) -> float:
    """CPU time of this process for one call."""
    gc.collect()
    begun = time.process_time()
    of()
    return 1_000 * (time.process_time() - begun)


def share(number: int, cap: Cap | None) -> bytes:
    """What one of `SHARES` workers returns of an incident: all its rows differ."""
    first = number * SUSPECTS // SHARES
    found = [
        suspect_at(Slot(UUID(int=first + at), at), sources=[UUID(int=2**100 + at)], oldest=NOW)
        for at in range(SUSPECTS // SHARES)
    ]
    travel, left = split(each_once(found), len(found) if cap is None else cap.travel)
    apart = list(left_out(FAMILY, MemoryHolds(), left, 0 if cap is None else cap.ready))
    return pickle.dumps(BatchLook(travel, SUSPECTS // SHARES, left_out=apart))


@pytest.fixture
def log_lines() -> Iterator[list[int]]:
    """The stream's log, written as a service writes it, to nowhere; the number of its lines."""
    lines = [0]

    class Nowhere(logging.StreamHandler[IO[str]]):
        def emit(self, record: logging.LogRecord) -> None:
            lines[0] += 1
            super().emit(record)

    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        log, handler = logging.getLogger("reconciler"), Nowhere(nowhere)
        handler.setFormatter(JsonLines())
        before, log.propagate = (log.level, log.propagate), False
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        yield lines
        log.removeHandler(handler)
        log.level, log.propagate = before


def held(suspects: Iterable[Suspect]) -> list[Outcome]:
    """What workers return while the breaker is open: each is a finding that waits."""
    breaker = Waiting(Wait.BREAKER, "breaker repairs: too many")
    waits = [replace(finding_at(each.slot, state=State.HELD), waits=breaker) for each in suspects]
    return [Outcome(each.slot, Action.REPORT, each, projection=each.projection) for each in waits]


def incident(cap: Cap | None, log_lines: list[int]) -> tuple[float, int, float, float, int, str]:
    """MB and number that travel, CPU (ms) to admit and to record them, lines, the reason."""
    shares = [share(number, cap) for number in range(SHARES)]
    decisions = started(MemoryPorts())
    admitted: list[Admission] = []
    looks: list[BatchLook] = []

    def admit() -> None:
        looks.append(read_looks(shares))
        admitted.append(decisions.admit(looks[0], PIECE))

    log_lines[0] = 0
    to_admit = cpu_ms(admit)
    outcomes = held(looks[0].suspects)
    to_record = cpu_ms(lambda: decisions.record_outcomes(Repaired(outcomes)))
    why = str(admitted[0].repairs_wait)
    size = sum(map(len, shares)) / 1e6
    return size, len(outcomes), to_admit, to_record, log_lines[0], why


def test_suspects_of_an_incident(log_lines: list[int]) -> None:
    capped = Cap.of_a_share(SHARES, BELIEVED)
    rows = [(name, *incident(cap, log_lines)) for name, cap in (("all", None), ("few", capped))]
    publish(
        "Suspects of an incident in the driver",
        f"CPU time of the driver for a slice of which {SUSPECTS:,} rows differ, in {SHARES} shares,"
        " without any server: until it is admitted, and to record and to log what was found. *All*:"
        f" each suspect travels; *few*: {MOST:,} and the count of the others, as in the stream."
        " Promised: 700 ms.",
        table(("suspects", "MB", "travel", "admit, ms", "record, ms", "lines", "breaker"), rows),
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
