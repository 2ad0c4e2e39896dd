"""What a worker's look is given: keys as Arrow batches, and a job that examines nothing."""

from __future__ import annotations

import pyarrow as pa

from reconcilers.declared.family import Projection
from streaming.pipeline.worker import Job
from streaming.steps.examine import Examiner

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("mailboxid", "messageid", "suspected", "projection")),
        *((name, pa.int64()) for name in ("uid", "oldest", "quickest", "deleted_at")),
        *((name, pa.bool_()) for name in ("from_truth", "looked_again")),
        *((name, pa.string()) for name in ("deleted_from", "reason", "echo", "topic")),
        *((name, pa.int64()) for name in ("expires_at", "changes", "partition", "offset")),
    ]
)
"""The keys of a slice, by columns."""


def no_examiner(_job: Job, _projection: Projection) -> Examiner:
    raise AssertionError("a look examines nothing")
