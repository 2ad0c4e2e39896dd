"""`reconcile` with a trace beside it: Spark's progress and what each batch examined, as JSON lines.

The product knows nothing of it: two of its methods are wrapped here before it starts.
"""

import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streaming.app import main
from streaming.pipeline.batch_record import BatchPlace
from streaming.pipeline.batches import Batches
from streaming.pipeline.supervisor import QuerySupervisor
from streaming.pipeline.worker import BatchLook

TRACE = "BENCH_TRACE"
"""Names the file in the environment."""


@dataclass(frozen=True)
class Batch:
    """One batch. Seconds; ``ended_at`` since the epoch, ``parts`` are Spark's durations."""

    number: int
    ended_at: float
    examined: int = 0
    suspects: int = 0
    capture_delay: float | None = None
    events: int = 0
    state_rows: int = 0
    parts: dict[str, float] = field(default_factory=dict)

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


def _trace() -> None:
    end, show = Batches.ended, QuerySupervisor._show

    def ended(self: Batches, look: BatchLook, batch: BatchPlace) -> None:
        end(self, look, batch)
        _write(
            number=batch.batch_id,
            ended_at=time.time(),
            examined=look.examined,
            suspects=len(look.suspects),
            capture_delay=None if look.freshest is None else look.freshest[1] / 1e6,
        )

    def shown(self: QuerySupervisor, told: dict[str, Any]) -> None:
        show(self, told)
        _write(
            number=told["batchId"],
            events=sum(source["numInputRows"] for source in told["sources"]),
            state_rows=sum(each.get("numRowsTotal", 0) for each in told["stateOperators"]),
            parts={name: ms / 1000 for name, ms in told["durationMs"].items()},
        )

    Batches.ended = ended  # type: ignore[method-assign]
    QuerySupervisor._show = shown  # type: ignore[method-assign]


if __name__ == "__main__":
    _trace()
    sys.exit(main())
