"""One Python worker fed the same keys again and again: its memory, and where its time goes.

Run as a process of its own: settings file, file of keys, how many keys in all. Prints JSON.
"""

import json
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from checkpoints.cassandra import CassandraLineage
from streaming.commands.wiring import workers
from streaming.pipeline import worker
from streaming.settings import load
from streaming.steps.glance import Glance
from streaming.steps.look import Look
from streaming.steps.record_lineage import LineageRecorder
from streaming.tables import Tables
from tests.bench.backlog import CHANGES
from tests.bench.pieces import bound

KEYS_A_SHARE = CHANGES // 4
"""What a worker gets in one batch."""
TIMED: tuple[tuple[type, str, str], ...] = (
    (Glance, "at", "glance"),
    (Look, "at", "resolve: keys to slots and messages"),
    (Tables, "projection_rows", "look: projection rows"),
    (Tables, "truth_rows", "look: truth rows"),
    (CassandraLineage, "of_sources", "lineage: read"),
    (CassandraLineage, "of_slots", "lineage: read"),
    (LineageRecorder, "rows", "lineage: what is new"),
    (CassandraLineage, "remember", "lineage: write"),
    (Look, "_compared", "compare"),
)


@dataclass
class Fed:
    """Seconds since the start and resident MiB after so many keys."""

    keys: int
    slots: int
    seconds: float
    rss: float


@dataclass
class Clock:
    """Seconds by what was done; what runs inside another is not counted twice."""

    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _doing: list[str] = field(default_factory=lambda: ["rows to keys"])
    _since: float = field(default_factory=time.perf_counter)

    def turn(self) -> None:
        now = time.perf_counter()
        self.spent[self._doing[-1]] += now - self._since
        self._since = now

    def timed(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(function)
        def inside(*arguments: Any) -> Any:
            self.turn()
            self._doing.append(name)
            try:
                return function(*arguments)
            finally:
                self.turn()
                self._doing.pop()

        return inside


def feed(config: Path, keys: Path, total: int) -> Iterator[Fed]:
    """Feed the worker until it had so many keys."""
    settings = load(config)
    job = workers.job(settings, bound(settings), settings.kafka.suspects_topic)
    look = worker.look_task(job)
    rows = pq.read_table(keys)
    began, fed, slots = time.perf_counter(), 0, 0
    while fed < total:
        for start in range(0, rows.num_rows, KEYS_A_SHARE):
            share = rows.slice(start, min(KEYS_A_SHARE, total - fed))
            found = worker.read_looks(_results(look(share.to_batches(2000))))
            fed, slots = fed + share.num_rows, slots + found.examined
            yield Fed(fed, slots, time.perf_counter() - began, _rss())
            if fed >= total:
                return


def _results(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        yield from batch.to_pydict()["result"]


def _rss() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def main(config: str, keys: str, total: str) -> None:
    clock = Clock()
    for owner, name, doing in TIMED:
        setattr(owner, name, clock.timed(getattr(owner, name), doing))
    for each in feed(Path(config), Path(keys), int(total)):
        print(json.dumps(asdict(each)), flush=True)
    clock.turn()
    print(json.dumps({"spent": clock.spent}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
