"""`reconcile` with a trace beside it: Spark's progress and what each batch examined, as JSON lines.

The product knows nothing of it: three of its methods are wrapped here before it starts. Only the
stream of messages is traced; those of other families run beside it.
"""

import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from reconcilers.declared.families.message import MESSAGE
from streaming.app import main
from streaming.pipeline import query
from streaming.pipeline.batches import Batches
from streaming.pipeline.query import FamilyQuery
from streaming.pipeline.slices import Slice
from streaming.pipeline.supervisor import BatchReport
from streaming.pipeline.worker import BatchLook

TRACE = "BENCH_TRACE"
"""Names the file in the environment."""
STATE_TIMES = {
    "updates": "allUpdatesTimeMs",
    "removals": "allRemovalsTimeMs",
    "commit": "commitTimeMs",
}
"""What the state store spends its time on, by the name that Spark has for it."""


@dataclass(frozen=True)
class Batch:
    """One batch. Seconds; ``ended_at`` since the epoch, ``parts`` are Spark's durations."""

    number: int
    ended_at: float
    examined: int = 0
    suspects: int = 0
    events: int = 0
    state_rows: int = 0
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def began_at(self) -> float:
        return self.ended_at - self.seconds

    @property
    def seconds(self) -> float:
        return self.parts.get("triggerExecution", 0.0)


def read_trace(path: Path) -> list[Batch]:
    """The batches whose progress Spark has told, in order; one executed again counts once."""
    facts: dict[int, dict[str, Any]] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            told = json.loads(line)
            facts.setdefault(told["number"], {}).update(told)
    return [
        Batch(**told) for _, told in sorted(facts.items()) if {"parts", "ended_at"} <= told.keys()
    ]


def _write(**facts: Any) -> None:
    with Path(os.environ[TRACE]).open("a", encoding="utf-8") as trace:
        trace.write(json.dumps(facts) + "\n")


def _durations(told: dict[str, Any]) -> dict[str, float]:
    """Milliseconds: those of the batch, and those of the state store, of all its tasks."""
    store = {
        f"state {what}": sum(each.get(field_of, 0) for each in told["stateOperators"])
        for what, field_of in STATE_TIMES.items()
    }
    return {**told["durationMs"], **store}


def _trace() -> None:
    run, end, told_by_spark = FamilyQuery._batch, Batches.ended, query.batch_report
    this: dict[str, Any] = {}

    def batch(self: FamilyQuery, closed: DataFrame, _batch_id: int) -> None:
        this.update(number=_batch_id, examined=0, suspects=0)
        run(self, closed, _batch_id)
        _write(ended_at=time.time(), **this)

    def ended(self: Batches, look: BatchLook, piece: Slice) -> None:
        end(self, look, piece)
        if self.record.family == MESSAGE.name:
            this["examined"] += look.examined
            this["suspects"] += len(look.suspects)

    def report(told: dict[str, Any]) -> BatchReport:
        found = told_by_spark(told)
        _write(
            number=told["batchId"],
            events=sum(source["numInputRows"] for source in told["sources"]),
            state_rows=found.state_rows,
            parts={name: ms / 1000 for name, ms in _durations(told).items()},
        )
        return found

    FamilyQuery._batch = batch  # type: ignore[method-assign]
    Batches.ended = ended  # type: ignore[method-assign]
    query.batch_report = report


if __name__ == "__main__":
    _trace()
    sys.exit(main())
