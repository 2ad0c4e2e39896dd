"""Shows the sweeps of an installation, those of other processes too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from checkpoints.clock import to_seconds
from checkpoints.sweeps import SweepRecord
from reconcilers.words.model import Micros
from streaming.monitoring.metrics import Metrics


def succeeded_at(sweeps: Sequence[SweepRecord]) -> Micros | None:
    """When (µs) the last sweep ended that read the whole truth; None without one."""
    ends = [each.ended_at for each in sweeps if each.truth_swept_at is not None]
    return max((at for at in ends if at is not None), default=None)


def failed_at(sweeps: Sequence[SweepRecord], running: SweepRecord | None) -> Micros | None:
    """When (µs) the last sweep failed, None if none has.

    A sweep has failed if it ended without having read the whole truth: at its end; or if the newest
    one has not ended and is not ``running``: at its beginning.
    """
    newest = max(sweeps, key=lambda each: each.began_at, default=None)
    failed = [each.ended_at for each in sweeps if each.truth_swept_at is None]
    if newest is not None and newest.ended_at is None and newest != running:
        failed.append(newest.began_at)
    return max((at for at in failed if at is not None), default=None)


@dataclass(slots=True)
class SweepReport:
    """Shows when the last sweep of each family succeeded, and when one failed.

    A failure stays shown.
    """

    metrics: Metrics
    _failed_at: dict[str, Micros] = field(default_factory=dict)

    def show(self, family: str, sweeps: Sequence[SweepRecord], running: SweepRecord | None) -> None:
        """Show a family's recorded sweeps; ``running`` is the one that a process runs now."""
        succeeded, failed = succeeded_at(sweeps), failed_at(sweeps, running)
        if succeeded is not None:
            self.metrics.sweep_success.labels(family).set(to_seconds(succeeded))
        if failed is not None and failed > self._failed_at.get(family, 0):
            self._failed_at[family] = failed
            self.metrics.sweep_failure.labels(family).set(to_seconds(failed))
        ended = [each for each in sweeps if each.ended_at is not None]
        last = max(ended, key=lambda each: each.began_at, default=None)
        if last is not None and last.ended_at is not None:
            took = to_seconds(last.ended_at - last.began_at)
            self.metrics.sweep_duration.labels(family).set(took)
