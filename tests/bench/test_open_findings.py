"""What open findings cost the driver while they wait: about a minute, without a stack."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from reconcilers.declared.family import Family
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.words.model import Kind, Micros, Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming.pipeline.batch_record import BatchSummaries
from streaming.pipeline.batches import Batches
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook
from streaming.steps.outcome import Outcome, Repaired
from tests.bench.report import publish, table
from tests.builders.rows import FAMILY, NOW, SECOND
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.unit.stream.test_batches import MemoryPorts, batches

pytestmark = pytest.mark.bench

MANY, MAILBOXES = 200_000, 2_000
FIRST, SLICES = 250, 500
BETWEEN: Micros = 5 * SECOND
WEEK: Micros = 7 * 24 * 3600 * SECOND
HELD = State.HELD, Kind.EXTRA_ROW, "is not in the truth"
REPORTED = State.REPORTED, Kind.AMBIGUOUS_RANGE_DELETE, "no delete was heard since"
MOST_MS, MOST_MIB = 1.0, 100.0


class ManyOpen(MemoryJournal):
    """A journal with so many open findings, half of them held, which are made as they are read.

    What is held is due; what is reported is looked at once a week, each at its time.
    """

    def __init__(self, number: int) -> None:
        super().__init__(lambda: NOW)
        self.number = number

    def open_findings(self, family: Family) -> Iterator[Finding]:
        """Of `MAILBOXES` mailboxes."""
        assert family.name == FAMILY.name
        return map(finding, range(self.number))


def finding(number: int) -> Finding:
    """One of them."""
    state, kind, sentence = HELD if number % 2 else REPORTED
    return Finding(
        family=FAMILY.name,
        projection="messages",
        slot=Slot(UUID(int=number % MAILBOXES), number // MAILBOXES + 1),
        source=str(UUID(int=number + 2**100)),
        kind=kind,
        state=state,
        sentence=sentence,
        found_at=NOW,
        oldest=NOW - number,
        next_look=NOW if state is State.HELD else NOW + WEEK * number // MANY,
        waits=Waiting(Wait.BREAKER, "breaker removals") if state is State.HELD else None,
    )


def driver(number: int) -> Batches:
    """What the driver asks for each slice, with so many open findings."""
    made = batches(MemoryPorts(ManyOpen(number)))
    listing = replace(FAMILY.listing, grants_access=True)  # the age of the oldest is asked for
    made.open_findings.family = replace(FAMILY, projections=(listing, *FAMILY.projections[1:]))
    summaries = BatchSummaries(
        take=lambda summary: None,
        paused_because=lambda: None,
        open_messages=made.open_findings.messages,
    )
    return replace(made, record=replace(made.record, summaries=summaries))


def slice_of(number: int) -> Slice:
    """The slice of one record."""
    at = NOW + number * BETWEEN
    return Slice({("t", 0): number}, {("t", 0): number + 1}, at, at)


def cpu_of_a_slice(made: Batches) -> float:
    """Mean CPU time (ms) of this thread; in each slice one finding changes."""
    spent = list[float]()
    changing = finding(1)
    for number in range(FIRST + SLICES):
        look, piece = BatchLook(examined=100), slice_of(number)
        changing = replace(changing, attempts=number)
        began = time.thread_time()
        made.later_looks(NOW + number * BETWEEN)
        made.admit(look, piece)
        made.record_outcomes(Repaired([Outcome(changing.slot, Action.KEEP, changing)]))
        made.ended(look, piece)
        spent.append(1_000 * (time.thread_time() - began))
    return statistics.mean(spent[FIRST:])


def memory_of(number: int) -> float:
    """MiB of Python objects that the driver keeps."""
    made = driver(number)
    gc.collect()
    tracemalloc.start()
    made.recall()
    for each in range(FIRST):
        made.later_looks(NOW + each * BETWEEN)
    made.open_findings.messages()
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept / 2**20


def test_open_findings_cost_nothing_while_they_wait() -> None:
    without, some = driver(0), driver(MANY)
    for each in (without, some):
        each.start()
    cpu = {0: cpu_of_a_slice(without), MANY: cpu_of_a_slice(some)}
    del without, some
    memory = {number: memory_of(number) for number in (0, MANY)}
    more_ms, more_mib = cpu[MANY] - cpu[0], memory[MANY] - memory[0]
    publish(
        "Open findings that wait",
        f"The driver's own work for a slice in which one finding changes, without any server:"
        f" {MANY:,} open findings of {MAILBOXES:,} mailboxes, half of them held and due, half"
        f" reported and looked at once a week; mean of {SLICES:,} slices.",
        table(
            ("open findings", "CPU a slice, ms", "memory, MiB"),
            [(f"{number:,}", cpu[number], memory[number]) for number in cpu],
        ),
        f"They add {more_ms:.2f} ms a slice and {more_mib:.0f} MiB"
        f" (promised: {MOST_MS:g} ms and {MOST_MIB:g} MiB).",
    )
    assert more_ms <= MOST_MS
    assert more_mib <= MOST_MIB
