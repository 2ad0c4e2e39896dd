"""The look of one worker and nothing else: the real driver, tables and look, a fake server.

Measured is what this process spends, of all of its threads; the server has a process of its own.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import median

import pyarrow as pa

from reconcilers.declared.family import bind
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from streaming.pipeline import worker, worker_process
from streaming.pipeline.arrow import SettledKeys
from streaming.pipeline.worker import BatchLook, Connections, Job, read_looks
from streaming.settings import Settings
from streaming.tables import schema_of
from streaming.tables.session import open_session
from tests.builders.looks import SCHEMA
from tests.builders.mail_rows import MailRow
from tests.builders.server_looks import connections_at, no_examiner
from tests.fakes.recording_session import RecordingSession

KEYSPACE, OWN = "mail", "own"
KEYS_A_BATCH = 2_000
"""As many as Spark sends a worker at once."""
IN_FLIGHT = 8
KEPT: Mapping[str, list[str]] = {
    "messages alone": ["messages"],
    "all index tables": [each.name for each in MESSAGE_PROJECTIONS],
}
"""What is kept, by the name of its column."""


@dataclass
class Worker:
    """One worker's share of a batch, and all that it needs. ``session`` takes down its reads."""

    job: Job
    share: list[pa.RecordBatch]
    session: RecordingSession

    def look(self) -> BatchLook:
        """What a worker does with keys that are not plainly right: wakes, the reads, the look."""
        self.session.asked.clear()
        return self._done(replace(self.job, connect=lambda *_: replace(self.ours, glance=None)))

    def glance(self) -> BatchLook:
        """The same, where all keys are plainly right: nobody decodes them."""
        return self._done(self.job)

    @property
    def ours(self) -> Connections:
        return self.job.connections()

    def _done(self, job: Job) -> BatchLook:
        results = (batch.to_pydict()["result"] for batch in worker.look_task(job)(self.share))
        return read_looks(each for some in results for each in some)

    def wakes(self) -> None:
        """Its keys from Arrow, and nothing with them."""
        for batch in self.share:
            for _ in SettledKeys.of(batch).wakes(self.job.family):
                pass

    def reads(self) -> None:
        """What the last look asked for, asked again: the driver's part alone."""
        for _ in self.session.ask_again(IN_FLIGHT):
            pass


Variant = Callable[[Worker], BatchLook]
"""One way to do the same look. Whatever it is, it finds the same."""


def frozen(of: Worker) -> BatchLook:
    """The look while Python's garbage collector leaves alone what a worker keeps."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*worker_process.COLLECTED_AFTER)
    try:
        return of.look()
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


VARIANTS: Mapping[str, Variant] = {
    "look": Worker.look,
    "look, garbage collector frozen": frozen,
    "glance": Worker.glance,
}
"""What one run compares: each after the other, round by round, as ratios to the first.

A change that makes the look cheaper has a line here, for as long as the way without it can be had.
"""


@contextmanager
def working(port: int, names: Sequence[str], share: list[pa.RecordBatch]) -> Iterator[Worker]:
    """A worker that keeps these projections, at a fake server."""
    settings = Settings.model_validate(
        {
            "cassandra": {"port": port, "keyspace": KEYSPACE, "own_keyspace": OWN}
            | {"rows_per_second": 100_000_000},
            "repair": {"projections": names},
        }
    )
    session = open_session(settings.cassandra)
    recording = RecordingSession(session)
    try:
        family = bind(settings.families()[0], schema_of(session, KEYSPACE))
        ours = connections_at(recording, settings, family)
        yield Worker(
            Job(settings, family, "suspects", lambda *_: ours, no_examiner), share, recording
        )
    finally:
        session.cluster.shutdown()


def share_of(truth: Sequence[MailRow]) -> list[pa.RecordBatch]:
    """Two keys a row, as a changed flag gives them: the projection's event names no message."""
    keys = []
    for row in truth:
        key = {"mailboxid": str(row["mailboxid"]), "uid": row["uid"], "changes": 1}
        key |= {"looked_again": False, "oldest": 1, "newest": 1, "quickest": 1}
        keys.append(key | {"messageid": str(row["messageid"]), "from_truth": True})
        keys.append(key | {"messageid": None, "from_truth": False})
    return [
        pa.RecordBatch.from_pylist(keys[start : start + KEYS_A_BATCH], schema=SCHEMA)
        for start in range(0, len(keys), KEYS_A_BATCH)
    ]


# --- what is measured


@dataclass
class Spent:
    """CPU seconds of this process, round by round, and those of the garbage collector within."""

    rounds: list[float] = field(default_factory=list)
    collector: list[float] = field(default_factory=list)
    _since: float = 0.0
    _collecting: float = 0.0

    def of(self, what: Callable[[], object]) -> None:
        """One more round."""
        gc.collect()
        self._collecting = 0.0
        gc.callbacks.append(self._collected)
        began = time.process_time()
        try:
            what()
        finally:
            self.rounds.append(time.process_time() - began)
            gc.callbacks.remove(self._collected)
            self.collector.append(self._collecting)

    def _collected(self, phase: str, _: object) -> None:
        now = time.thread_time()
        if phase == "start":
            self._since = now
        else:
            self._collecting += now - self._since

    def micros(self, rows: int) -> float:
        """Of the best round, a row."""
        return min(self.rounds) / rows * 1e6

    def ratio_to(self, other: Spent) -> float:
        """The median of the rounds' ratios: what disturbs a round disturbs both."""
        return median(mine / its for mine, its in zip(self.rounds, other.rounds, strict=True))

    def collector_micros(self, rows: int) -> float:
        """Of the collector in the best round, a row."""
        return min(zip(self.rounds, self.collector, strict=True))[1] / rows * 1e6
