"""Users at work: a seeded random mix of mail operations from concurrent workers.

    python -m deploy.mailserver.workload --port 9042 --keyspace apache_james --faults 100

The mix and the faults are the same whenever the seed is; the order in which workers get
their turns is not.
"""

import argparse
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from cassandra.cluster import Session

from deploy.mailserver.connection import add_options, connected
from deploy.mailserver.counters import COUNTER_TABLES
from deploy.mailserver.directory import Directory
from deploy.mailserver.faults import (
    COUNTER_FAULTS,
    INDEX_FAULTS,
    MESSAGE_FAULTS,
    FaultKind,
    FaultPlan,
    Faults,
)
from deploy.mailserver.indexes import INDEX_PROJECTIONS
from deploy.mailserver.james import create_schema
from deploy.mailserver.ledger import Ledger
from deploy.mailserver.rights import RIGHTS_PROJECTIONS
from deploy.mailserver.variant import USUAL, Variant
from deploy.mailserver.worker import Office, Worker

RARE, RARER = 4, 20


@dataclass(frozen=True, slots=True)
class Workload:
    """How much, how fast, how unlucky. `rate` is operations per second over all workers.

    `faults` strike statements to messageidtable; each index meets `index_faults`, each counter
    table `counter_faults`, any other projection as many as `other_faults` has for it.
    `clock_offsets_ms`: one mail server clock after the other is set off by these. `variant` is how
    James is set up.
    """

    operations: int = 300
    rate: float = 50.0
    workers: int = 4
    users: int = 3
    mailboxes_per_user: int = 3
    seed: int = 1
    faults: int = 0
    fault_kinds: tuple[FaultKind, ...] = MESSAGE_FAULTS
    index_faults: int = 0
    index_fault_kinds: tuple[FaultKind, ...] = INDEX_FAULTS
    counter_faults: int = 0
    counter_fault_kinds: tuple[FaultKind, ...] = COUNTER_FAULTS
    other_faults: Mapping[str, int] = field(default_factory=dict)
    other_fault_kinds: tuple[FaultKind, ...] = INDEX_FAULTS
    late_s: tuple[float, float] = (2.0, 6.0)
    clock_offsets_ms: tuple[int, ...] = (0,)
    variant: Variant = USUAL

    def fault_plans(self) -> list[FaultPlan]:
        """One for each projection, over so many statements as are surely sent to it.

        Each operation sends one to messageidtable; of `RARE` at least one sends any to an index or
        a counter, of `RARER` at least one any other.
        """
        messages = FaultPlan(self.seed, self.faults, self.operations, self.fault_kinds, self.late_s)
        others = {
            **dict.fromkeys(INDEX_PROJECTIONS, (self.index_faults, self.index_fault_kinds)),
            **dict.fromkeys(COUNTER_TABLES, (self.counter_faults, self.counter_fault_kinds)),
        }
        rarer = {name: (count, self.other_fault_kinds) for name, count in self.other_faults.items()}
        return [messages] + [
            FaultPlan(
                self.seed + place,
                count,
                self.operations // (RARER if name in rarer else RARE),
                kinds,
                projection=name,
            )
            for place, (name, (count, kinds)) in enumerate({**others, **rarer}.items(), 1)
        ]

    def rest_s(self) -> float:
        """Seconds between two changes of a message that clock offsets need; mostly 0."""
        offsets = (0, *self.clock_offsets_ms)
        spread_ms = max(offsets) - min(offsets)
        return (spread_ms + 100) / 1000 if spread_ms else 0.0


def run(
    session: Session,
    keyspace: str,
    workload: Workload,
    ledger: Ledger | None = None,
    stop: threading.Event | None = None,
) -> Ledger:
    """Run the workload to its end (or until `stop` is set), late statements included."""
    ledger = ledger or Ledger()
    stop = stop or threading.Event()
    faults = Faults(workload.fault_plans(), ledger)
    directory = Directory(workload.rest_s())
    office = Office(
        session, keyspace, directory, faults, workload.clock_offsets_ms, workload.variant
    )
    office.create_mailboxes(workload.users, workload.mailboxes_per_user)
    turns = Turns(workload.operations, workload.rate, stop)
    with ThreadPoolExecutor(workload.workers) as pool:
        workers = [
            pool.submit(Worker(office, number, workload.seed).work, turns)
            for number in range(workload.workers)
        ]
        try:
            for worker in workers:
                worker.result()
        finally:
            stop.set()
    faults.wait_for_late_statements()
    ledger.settle()
    return ledger


class Turns:
    """Deals out operations 0, 1, 2, … at the target rate; safe for threads."""

    def __init__(self, operations: int, rate: float, stop: threading.Event) -> None:
        self._numbers = iter(range(operations))
        self._rate = rate
        self._stop = stop
        self._started_at = time.monotonic()
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[int]:
        """The numbers for one worker, each not before its time."""
        while (number := self._next()) is not None:
            due_at = self._started_at + number / self._rate
            if self._stop.wait(max(0.0, due_at - time.monotonic())):
                return
            yield number

    def _next(self) -> int | None:
        with self._lock:
            return next(self._numbers, None)


def main() -> None:
    """Run a workload from the command line and print what was planted, as JSON."""
    parser = argparse.ArgumentParser(description="mail operations with seeded faults")
    add_options(parser)
    parser.add_argument("--operations", type=int, default=300)
    parser.add_argument("--rate", type=float, default=50.0, help="operations per second")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--faults",
        type=int,
        default=0,
        help="at most as many as operations; a tenth more in each index and counter table, a"
        " twentieth in each table of rights",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ledger", type=Path, help="write the ledger here, as JSON lines")
    given = parser.parse_args()
    if not 0 <= given.faults <= given.operations:
        parser.error("--faults: from 0 to the number of operations")
    workload = Workload(
        operations=given.operations,
        rate=given.rate,
        workers=given.workers,
        faults=given.faults,
        index_faults=given.faults // 10,
        counter_faults=given.faults // 10,
        other_faults=dict.fromkeys(RIGHTS_PROJECTIONS, given.faults // 20),
        seed=given.seed,
    )
    with connected(given.host, given.port) as session:
        create_schema(session, given.keyspace)
        ledger = run(session, given.keyspace, workload, Ledger(given.ledger))
    kinds = Counter(f"{entry.projection} {entry.kind}" for entry in ledger.entries())
    print(json.dumps({"operations": given.operations, "faults": kinds}))


if __name__ == "__main__":
    main()
