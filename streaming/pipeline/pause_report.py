"""The driver's report of pauses, in the log and by a metric."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass

from reconcilers.limits.pause import NO_PILOT, Pause
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Wait
from streaming.monitoring.metrics import Metrics
from streaming.steps.pauses import PauseWatch

log = logging.getLogger("reconciler")

WHAT_TO_DO = (
    "look first, then `reconcile resume --own-keyspace` (deploy/runbook.md, *Restore our keyspace*)"
)
PAUSES = (Wait.PAUSE, Wait.PILOT, Wait.OWN_KEYSPACE)
"""What ends when a pause does."""


def believed(_why: str, _until: Micros | None) -> None:
    """Do nothing: for processes without lineage that could be wrong."""


@dataclass(slots=True)
class PauseReport:
    """Logs once that a pause begins, and once how it ended.

    ``doubted`` is called once for each doubt about our keyspace: with the reason, and with the time
    (µs) up to which the keyspace was known to be right.
    """

    watch: PauseWatch
    metrics: Metrics
    doubted: Callable[[str, Micros | None], None] = believed
    _known: frozenset[Pause] = frozenset()

    @property
    def generation(self) -> Micros | None:
        """The newest generation of our own keyspace that this process has seen (µs)."""
        return None if self.watch.keyspace is None else self.watch.keyspace.newest

    def is_over(self) -> bool:
        """Whether a pause has ended since the last call; the pauses are read again.

        Breakers are read before this. A truncation that emptied their answer is therefore noticed
        here, for the next slice. Raises `Retryable`.
        """
        standing = frozenset(self.watch.asked_anew())
        for pause in sorted(standing - self._known, key=str):
            if pause.is_doubt:
                log.error("%s; %s", pause.told, WHAT_TO_DO)
                self.doubted(pause.reason, self.generation)
            else:
                log.warning("%s", pause.told)
        in_doubt = any(each.is_doubt for each in standing)  # a missing pause may then be lost
        over = frozenset() if in_doubt else self._known - standing
        for pause in sorted(over, key=str):
            log.warning("%s go on: %s", pause.subject, self._end(pause))
        self._show(standing)
        self._known = standing
        return bool(over)

    def _show(self, standing: Collection[Pause]) -> None:
        waiting = {each.waiting.wait: each.waiting for each in standing}
        for wait in PAUSES:
            self.metrics.show_wait(wait, waiting.get(wait))

    def _end(self, pause: Pause) -> str:
        if pause.is_doubt:
            return "a person has said that our keyspace is right"
        if pause == NO_PILOT:
            return "a pilot stands"
        by = dict(self.watch.pauses.history()).get(pause)
        return "its time has come" if by is None else f"resumed by {by.who}: {by.reason}"
