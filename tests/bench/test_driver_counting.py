"""CPU and memory of the driver for a slice of a large cluster with counters, without servers."""

from __future__ import annotations

import gc
import math
import pickle
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from checkpoints.clock import HOUR
from reconcilers.counters.drift import Evidence
from reconcilers.declared.tally import QuotaRoot
from reconcilers.words.model import Micros
from streaming.counters.changed_mailboxes import ChangedMailboxes
from streaming.counters.counter_row import CounterRows, Owners
from streaming.counters.look_rules import LookRules
from streaming.counters.loop import CounterLoop
from streaming.counters.mailbox_changes import ID, MailboxChanges, NumberedChanges
from streaming.counters.progress import CounterProgress
from streaming.counters.recent_changes import SPANS, RecentChanges
from streaming.counters.schedule import CounterScheduler
from streaming.counters.screening import Screened
from streaming.counters.screening_queue import MarkedHours, ScreeningQueue
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.batch_record import BatchSummaries
from streaming.pipeline.batches import Batches
from streaming.pipeline.screen_task import ON_WORKERS
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook, read_looks
from streaming.steps.outcome import Repaired
from tests.bench.report import publish, table
from tests.bench.test_driver_slice import NAMES, NODES, PARTITIONS, PLACES, cpu_ms, echoes
from tests.bench.test_open_findings import ManyOpen
from tests.builders.canaries import frontier_watch, of_slice
from tests.builders.counters import FAMILIES
from tests.builders.rows import DELAY, NOW, SECOND
from tests.unit.stream.test_batches import MemoryPorts, batches

pytestmark = pytest.mark.bench

MARKED, CHANGED, SHARES, ROUNDS = 10_000_000, 200_000, 16, 5
FOUND = (5_000, 100_000)
BATCH = 5 * SECOND
LAG = 1_800.0
MOST_MS, MOST_MIB = 1_000.0, 1_024.0
RANDOM = np.random.default_rng(1)


def ids_of(numbers: Any) -> Any:
    """Ids of mailboxes by number, as uuids of version 1."""
    halves = np.empty((len(numbers), 2), np.uint64)
    halves[:, 0] = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    halves[:, 1] = 0x8000_0000_0000_0001
    return halves.view(ID).reshape(-1)


def a_batch() -> MailboxChanges:
    """One change in each of `CHANGED` mailboxes of `MARKED`."""
    ids = ids_of(
        RANDOM.choice(MARKED // CHANGED, CHANGED) + np.arange(0, MARKED, MARKED // CHANGED)
    )
    return MailboxChanges([(ids, np.ones(len(ids), np.uint32))])


def marked_in(hour: int) -> Iterator[UUID]:
    """All, in the newest hour."""
    if hour == NOW // HOUR:
        for first in range(0, MARKED, 1_000):
            for each in ids_of(np.arange(first, first + 1_000)):
                yield UUID(bytes=bytes(each).ljust(16, b"\0"))


class OneUserEach:
    """Each mailbox has a user of its own."""

    def owner(self, mailboxid: UUID) -> QuotaRoot:
        """Named by the mailbox."""
        return QuotaRoot("#private", f"{mailboxid}@example.org")

    def mailboxes(self, of: QuotaRoot) -> frozenset[UUID]:
        """Not asked for."""
        raise NotImplementedError(str(of))


def everything(mailboxids: Sequence[UUID]) -> Screened:
    """All of their counters may be wrong."""
    found = Screened()
    found.suspect(mailboxids, (each.name for family in FAMILIES for each in family.tallies))
    return found


def counting(now: list[Micros]) -> CounterLoop:
    """The loop of counters, whose looks are not made: all that it keeps of many mailboxes."""
    metrics = Metrics(CollectorRegistry())
    recent = RecentChanges(LAG, lambda: now[0] / SECOND)
    still: Any = SimpleNamespace(take=lambda _open: None)
    observer: Any = SimpleNamespace(
        counting=SimpleNamespace(open=still), recent=recent, heard=lambda _proven: None
    )
    rules = LookRules(DELAY, 60 * SECOND, Evidence(), round(LAG * SECOND))
    nothing: Any = None
    watch = CounterScheduler(observer, nothing, nothing, lambda: now[0], rules, nothing)
    tables: Any = OneUserEach()
    counters = CounterRows(FAMILIES, Owners(tables))
    queue = ScreeningQueue(MarkedHours(marked_in), lambda: now[0], rules)
    changed = ChangedMailboxes(watch, counters, queue, everything, at_once=ON_WORKERS)
    return CounterLoop(watch, changed, counters, nothing, (), CounterProgress(metrics))


def as_after_l(loop: CounterLoop, now: list[Micros]) -> None:
    """The changes of L: in each span as many mailboxes as its batches draw of all."""
    span = round(LAG * SECOND / SPANS)
    drawn = CHANGED * span / BATCH
    distinct = round(MARKED * (1 - math.exp(-drawn / MARKED)))
    for _ in range(SPANS):
        apart = RANDOM.integers(1, 2**33 // distinct, distinct)
        places = np.cumsum(apart)
        numbers = places[places < 2**32].astype(np.uint32)
        changes = NumberedChanges(numbers, np.ones(len(numbers), np.uint32))
        loop.scheduler.observer.recent.take(changes)
        now[0] += span + 1


def mib() -> float:
    """Resident memory of this process."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as told:
        return int(told.read().split()[1]) * 4_096 / 2**20


def driver(loop: CounterLoop, found: int) -> Batches:
    """The decisions of a slice, with open findings; its summary goes to the counters."""
    made = batches(MemoryPorts(ManyOpen(found)), frontier=frontier_watch(nodes=lambda: NAMES))
    told = BatchSummaries(loop.take, lambda: None, made.open_findings.messages)
    made = replace(made, record=replace(made.record, summaries=told))
    made.start()
    return made


def shares(number: int) -> list[bytes]:
    """What the workers return of a slice: canaries in one share, changes in all."""
    looks = [BatchLook(examined=CHANGED // SHARES) for _ in range(SHARES)]
    looks[0].echoes = of_slice(*echoes(number))
    ((ids, counts),) = a_batch().parts
    for each, its, many in zip(
        looks, np.array_split(ids, SHARES), np.array_split(counts, SHARES), strict=True
    ):
        each.changes = MailboxChanges([(its, many)])
    return [pickle.dumps(each) for each in looks]


def settle(decisions: Batches, pickled: list[bytes], number: int) -> None:
    """All that the stream's thread does for a slice, but for Spark's planning."""
    look = read_looks(pickled)
    end = NOW + number * BATCH
    offsets = dict.fromkeys(PLACES, number)
    piece = Slice(offsets, dict.fromkeys(PLACES, number + 1), end, end)
    decisions.later_looks(end)
    decisions.admit(look, piece)
    decisions.record_outcomes(Repaired([]))
    decisions.ended(look, piece)


def turn(loop: CounterLoop) -> None:
    """What the thread of counters does for a batch, besides its reads."""
    loop._take_in(0)
    loop.changed.schedule(float("inf"))
    loop.scheduler.ready()


def test_a_slice_with_millions_of_marked_mailboxes() -> None:
    now = [NOW]
    before = mib()
    loop = counting(now)
    as_after_l(loop, now)
    loop.changed.look_for_epoch()
    turn(loop)
    rows = [(f"{found:,}", *slices_with(found, loop, now, before)) for found in FOUND]
    publish(
        "A slice with counters in the driver",
        f"CPU time of the driver, ms a slice of 5 s, and its memory, without any server: {NODES}"
        f" nodes, {PARTITIONS} partitions, 5 canaries in each lane, {CHANGED:,} changed mailboxes,"
        f" open findings, {MARKED:,} mailboxes marked, each of a user of its own, and half an hour"
        f" of such slices before. Without Spark's planning and the reads of counters; median"
        f" of {ROUNDS} slices.",
        table(
            ("open findings", "stream", "counters", "sum", "pending counters", "memory, MiB"), rows
        ),
        f"Promised: {MOST_MS:,.0f} ms and {MOST_MIB:,.0f} MiB.",
    )
    assert max(row[3] for row in rows) <= MOST_MS
    assert max(row[5] for row in rows) <= MOST_MIB


def slices_with(
    found: int, loop: CounterLoop, now: list[Micros], before: float
) -> tuple[float, float, float, int, float]:
    """CPU (ms) of the stream, of the counters, and of both; pending counters; memory (MiB)."""
    decisions = driver(loop, found)
    spent: list[tuple[float, float]] = []
    most = 0.0
    for number in range(ROUNDS + 1):
        pickled = shares(number)
        now[0] += BATCH
        spent.append(
            (
                cpu_ms(lambda: settle(decisions, pickled, number)),  # noqa: B023
                cpu_ms(lambda: turn(loop)),
            )
        )
        most = max(most, mib() - before)
    stream, counters = (statistics.median(each) for each in zip(*spent[1:], strict=True))
    return stream, counters, stream + counters, len(loop.scheduler), most
