"""The sampler's thread: takes sampled changes, looks at them when they are due, and counts.

It has connections and a limit of its own, and never delays the stream. Its memory is lost with the
process. The next process reads the changes of the last ten minutes again from Kafka, and counts the
looks that nobody has made as not looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from reconcilers.rows.nines import KnownShare
from reconcilers.rows.sample import Sample, SampledBatch, SampleResult, age_label
from reconcilers.words.errors import ReconcilerError
from reconcilers.words.model import Micros
from streaming.monitoring.metrics import Metrics
from streaming.steps.sample_looks import SampledLooks

log = logging.getLogger("reconciler")

TICK = 1.0
"""Seconds between two turns."""
NUMBERS: Mapping[SampleResult, Callable[[KnownShare], int]] = {
    SampleResult.CONSISTENT: lambda share: share.good,
    SampleResult.INCONSISTENT: lambda share: share.bad,
    SampleResult.NOT_LOOKED_AT: lambda share: share.missing,
}
"""What the metric counts, by its outcome."""


@dataclass(slots=True)
class Sampler:
    """Samples one family; at most ``most`` keys are looked at in each `TICK`.

    ``earlier`` reads the changes of the last ten minutes before the start from Kafka.
    """

    sample: Sample
    looks: SampledLooks
    most: int
    metrics: Metrics
    clock: Callable[[], Micros]
    earlier: Callable[[], SampledBatch]
    _batches: SimpleQueue[SampledBatch] = field(default_factory=SimpleQueue)

    def take(self, batch: SampledBatch) -> None:
        """Queue the sampled changes of a batch; any thread may call this."""
        self._batches.put(batch)

    def run(self, stop: Event) -> None:
        """Run until ``stop`` is set."""
        try:
            self.take(self.earlier())
        except (ReconcilerError, PySparkException, Py4JError) as failed:
            log.warning("changes from before this start are not sampled: %s", failed)
        while not stop.wait(TICK):
            self.turn()

    def turn(self) -> None:
        """Take what was queued, make the looks that are due, and count them."""
        before = dict(self.sample.shares)
        try:
            while True:
                batch = self._batches.get_nowait()
                for change in batch.changes:
                    self.sample.changed(change)
                self.sample.leave_out(batch.left_out)
        except Empty:
            pass
        looks = self.sample.due(self.clock(), self.most)
        for look, results in zip(looks, self.looks.at(looks), strict=True):
            self.sample.looked(look, results)
        for (system, age), share in self.sample.shares.items():
            self._show(system, age, before.get((system, age), KnownShare()), share)

    def _show(self, system: str, age: Micros, before: KnownShare, now: KnownShare) -> None:
        for outcome, number in NUMBERS.items():
            counter = self.metrics.sampled_looks.labels(system, age_label(age), outcome)
            counter.inc(number(now) - number(before))
