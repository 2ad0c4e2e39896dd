"""The pauses that persons asked for, as the driver tells of them: in the log, and by a metric."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from checkpoints.pauses import Resumed
from reconcilers.pause import Pause
from reconcilers.write_target import WriteTarget
from streaming.monitoring.metrics import Metrics
from streaming.steps.pauses import PauseWatch

log = logging.getLogger("reconciler")


@dataclass(slots=True)
class PauseReport:
    """Tells once that a pause begins, and once how it ended."""

    watch: PauseWatch
    metrics: Metrics
    _known: frozenset[Pause] = frozenset()

    def why(self, target: WriteTarget) -> str | None:
        """Why this waits, None when it does not. Raises `Retryable`."""
        return self.watch.why(target)

    def is_over(self) -> bool:
        """Whether a pause has ended since this was asked last. Raises `Retryable`."""
        standing = frozenset(self.watch.standing())
        for pause in sorted(standing - self._known, key=str):
            log.warning("%s", pause.told)
        over = self._known - standing
        for pause in sorted(over, key=str):
            log.warning("%s go on: %s", pause.subject, _end(self._ended(pause)))
        paused = any(each.pilot is None for each in standing)
        self.metrics.paused.labels("paused").set(paused)
        self.metrics.paused.labels("pilot").set(any(each.pilot is not None for each in standing))
        self._known = standing
        return bool(over)

    def _ended(self, pause: Pause) -> Resumed | None:
        return dict(self.watch.pauses.history()).get(pause)


def _end(by: Resumed | None) -> str:
    return "its time has come" if by is None else f"resumed by {by.who}: {by.reason}"
