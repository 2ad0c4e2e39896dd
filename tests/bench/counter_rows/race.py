"""One measured run: writers that count changes in one of the ways, as fast as they can."""

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from cassandra.cluster import Session

from deploy.mailserver.faults import ProcessDiedError
from deploy.mailserver.history import CounterWrite
from tests.bench.counter_rows.book import Book
from tests.bench.counter_rows.tables import Counting, Writer
from tests.bench.counter_rows.workload import Shape, changes, new_mailboxes

PAXOS = "system.paxos"
Spending = Callable[[], float]
"""Tells how many seconds of CPU Cassandra has spent since it began."""


@dataclass(frozen=True)
class Load:
    """How many writers count, and where; how often a mailbox's numbers are read afterwards."""

    shape: Shape
    writers: int
    reads: int = 0


@dataclass(frozen=True)
class Speed:
    """What a run came to. Times of a change are in ms, CPU times in µs a change, or a read.

    ``operations`` are reads and writes of the table itself and of `PAXOS`, a change. ``client`` is
    this process, with all its writers. ``wrong`` are mailboxes that did not end exact.
    """

    name: str
    shape: str
    writers: int
    repetition: int
    changes: int
    seconds: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    client_us: float
    operations: Mapping[str, float]
    read_ms: float
    read_us: float
    wrong: int

    @property
    def rate(self) -> float:
        """Changes a second."""
        return self.changes / self.seconds


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that so large a share of all values does not exceed; 0 of none."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)] if ranked else 0.0


def measure(
    counting: Counting, load: Load, repetition: int, seconds: float, cassandra: Spending
) -> Speed:
    """Let the writers count for so many seconds; then read, and hold the table against the book.

    Each writer counts at least once, however slow the machine.
    """
    book, mailboxes = Book(), new_mailboxes(load.shape.mailboxes)
    session, table = counting.place.session, f"{counting.place.keyspace}.{counting.table}"
    before, spent, own = operations(session, table), cassandra(), time.process_time()
    began = time.monotonic()
    with counting.running():
        took = _count(counting, load, mailboxes, book, seconds)
    lasted = time.monotonic() - began
    done = len(took)
    cpu, client = cassandra() - spent, time.process_time() - own
    after = operations(session, table)
    read_ms, read_us = _reads(counting, mailboxes, load.reads, cassandra)
    return Speed(
        name=counting.name,
        shape=load.shape.name,
        writers=load.writers,
        repetition=repetition,
        changes=done,
        seconds=lasted,
        p50_ms=percentile(took, 0.5) * 1e3,
        p99_ms=percentile(took, 0.99) * 1e3,
        cpu_us=cpu / done * 1e6,
        client_us=client / done * 1e6,
        operations={each: (after[each] - before[each]) / done for each in after},
        read_ms=read_ms,
        read_us=read_us,
        wrong=len(book.errors(counting.stored(mailboxes))),
    )


def operations(session: Session, table: str) -> dict[str, int]:
    """Local reads and writes of a table and of `PAXOS` since the node began, as it says itself."""
    found = {}
    for short, name in (("table", table), ("paxos", PAXOS)):
        keyspace, _, table_name = name.partition(".")
        for what in ("read", "write"):
            cql = (
                f"SELECT count FROM system_views.local_{what}_latency"
                " WHERE keyspace_name = %s AND table_name = %s"
            )
            row = session.execute(cql, (keyspace, table_name)).one()
            found[f"{short} {what}s"] = row.count if row is not None else 0
    return found


def _count(
    counting: Counting, load: Load, mailboxes: Sequence[UUID], book: Book, seconds: float
) -> list[float]:
    """Seconds that each change took, of all writers."""
    end = time.monotonic() + seconds
    took: list[list[float]] = [[] for _ in range(load.writers)]

    def work(number: int) -> None:
        writer = counting.writer()
        for write in changes(number, mailboxes):
            began = time.monotonic()
            if began > end and took[number]:
                return
            book.enter(write)
            writer.count(write)
            took[number].append(time.monotonic() - began)

    run_together([partial(work, number) for number in range(load.writers)])
    return list(itertools.chain.from_iterable(took))


def _reads(
    counting: Counting, mailboxes: Sequence[UUID], reads: int, cassandra: Spending
) -> tuple[float, float]:
    """The median time (ms) of reading a mailbox's numbers, and Cassandra's CPU for it (µs)."""
    took, spent = [], cassandra()
    for _, mailboxid in zip(range(reads), itertools.cycle(mailboxes), strict=False):
        began = time.monotonic()
        counting.sums_of(mailboxid)
        took.append(time.monotonic() - began)
    return percentile(took, 0.5) * 1e3, (cassandra() - spent) / max(1, reads) * 1e6


def run_together(
    tasks: Sequence[Callable[[], None]], meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Each task on a thread of its own, and one here. Returns when all have ended.

    Raises what failed here; fails naming what failed elsewhere.
    """
    failed: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for each in threads:
        each.start()
    meanwhile()
    for each in threads:
        each.join()
    assert not failed, failed


def counted_by(new: Callable[[], Writer], writes: Iterable[CounterWrite]) -> None:
    """One writer after the other counts these: one that dies leaves its change to nobody."""
    writer = new()
    for write in writes:
        try:
            writer.count(write)
        except ProcessDiedError:
            writer = new()
