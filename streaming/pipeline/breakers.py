"""The breakers as the driver keeps them: counted slice by slice, open until a person resumes."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from checkpoints.journal import Journal
from reconcilers.policy import Breaker, BreakerLimits, BreakerState, Count, after_batch
from streaming.monitoring.metrics import Metrics

log = logging.getLogger("reconciler")


@dataclass(slots=True)
class BreakerWatch:
    """Counts, and opens in the journal before anything is decided by it."""

    journal: Journal
    limits: BreakerLimits
    metrics: Metrics
    _state: BreakerState = field(default_factory=BreakerState)

    def recall(self) -> None:
        """Read from the journal which are open: at the start."""
        self._state = BreakerState(self.journal.breakers())
        self._show()

    @property
    def any_open(self) -> bool:
        """Whether any is open."""
        return bool(self._state.opened)

    def count(self, count: Count) -> None:
        """A slice is about to be admitted; it is decided by its own count, too."""
        before = self._state
        after = after_batch(before, count, self.limits)
        for breaker in after.opened.keys() - before.opened.keys():
            reason = after.opened[breaker]
            self.journal.open_breaker(breaker, reason, count.at)
            log.error(
                "breaker %s opened: %s; repairs pause until `reconcile resume`",
                breaker.value,
                reason,
            )
        self._state = after  # only now: what the journal does not hold would look closed
        self._show()

    def reason(self, breaker: Breaker) -> str | None:
        """Why it is open, None when it is closed."""
        reason = self._state.opened.get(breaker)
        return None if reason is None else f"breaker {breaker.value}: {reason}"

    def was_resumed(self) -> bool:
        """Whether somebody has closed them since the last call; they count anew then."""
        if not self._state.opened or self.journal.breakers():
            return False
        self._state = BreakerState()
        self._show()
        log.info("breakers closed: looking again at what was held")
        return True

    def _show(self) -> None:
        for breaker in Breaker:
            self.metrics.breaker.labels(breaker.value).set(breaker in self._state.opened)
