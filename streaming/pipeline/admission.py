"""What may be repaired in a batch: decided by the driver between the look and any write.

Three things hold repairs back: a breaker that is open (more suspects than are believable), clocks
that differ by half the delay or more, and writers whose clocks run ahead so far. Suspects are
counted *before* anything is written: the batch that goes over a limit is not repaired either.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from checkpoints.journal import Journal
from checkpoints.lease import Lease
from reconcilers.family import Family
from reconcilers.model import Micros
from reconcilers.policy import (
    Admission,
    Breaker,
    BreakerLimits,
    BreakerState,
    after_batch,
    count_of,
)
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.worker import BatchLook
from streaming.settings import Mode

log = logging.getLogger("reconciler")

FEW_KEYS = 20
"""So many keys of fast writers may be stray ones."""


@dataclass(slots=True)
class AdmissionControl:
    """Admits one family's batches, one after the other.

    ``clock_trouble`` says why the clocks allow no repair now, None when they do.
    """

    family: Family
    journal: Journal
    limits: BreakerLimits
    mode: Mode
    lease: Lease | None
    clock_trouble: Callable[[], str | None]
    metrics: Metrics
    _state: BreakerState = field(default_factory=BreakerState)

    def recall(self) -> None:
        """Read from the journal which breakers are open: at the start."""
        self._state = BreakerState(self.journal.breakers())
        self._show()

    @property
    def lets_held_go(self) -> bool:
        """Whether what is held may be looked at: repair mode, and no breaker is open."""
        return self.mode is Mode.REPAIR and not self._state.opened

    def admit(self, look: BatchLook, batch: str, at: Micros) -> Admission:
        """Count this batch's suspects, read ``at`` (µs), and say what may be repaired.

        Raises `AlreadyRunning` when the lease is lost: this process may not write any more.
        """
        self.check_lease()
        count = count_of(look.suspects, self.family.listing.name, look.examined, batch, at)
        before = self._state
        after = after_batch(before, count, self.limits)
        for breaker in after.opened.keys() - before.opened.keys():
            reason = after.opened[breaker]
            self.journal.open_breaker(breaker, reason, at)
            log.error(
                "breaker %s opened: %s; repairs pause until `reconcile resume`",
                breaker.value,
                reason,
            )
        self._state = after  # only now: what the journal does not hold would look closed
        self._show()
        trouble = self._trouble(look)
        return Admission(
            repairs=trouble or self._reason(Breaker.REPAIRS),
            removals=self._reason(Breaker.REMOVALS),
            observe=self.mode is Mode.OBSERVE,
        )

    def was_resumed(self) -> bool:
        """Whether somebody has closed the breakers since the last call; they count anew then."""
        if not self._state.opened or self.journal.breakers():
            return False
        self._state = BreakerState()
        self._show()
        log.info("breakers closed: looking again at what was held")
        return True

    def paused_because(self) -> str | None:
        """Why nothing at all may be repaired now, whatever a batch holds; None when it may."""
        return self._trouble() or self._reason(Breaker.REPAIRS)

    def _trouble(self, look: BatchLook | None = None) -> str | None:
        """Why clocks allow no repair; that breakers hold them back is shown by their own metric."""
        clocks = self.clock_trouble()
        writers = None if look is None else _fast_writers(look)
        self.metrics.paused.labels("clocks").set(clocks is not None)
        if look is not None and look.examined:
            self.metrics.paused.labels("fast_writers").set(writers is not None)
        return clocks or writers

    def check_lease(self) -> None:
        """Raises `AlreadyRunning` when another live stream may hold the lease by now."""
        if self.lease is not None and not self.lease.holds():
            self.lease.acquire()

    def _reason(self, breaker: Breaker) -> str | None:
        reason = self._state.opened.get(breaker)
        return None if reason is None else f"breaker {breaker.value}: {reason}"

    def _show(self) -> None:
        for breaker in Breaker:
            self.metrics.breaker.labels(breaker.value).set(breaker in self._state.opened)


def _fast_writers(look: BatchLook) -> str | None:
    """Writers whose clocks run ahead by more than D/2, unless it is a stray key."""
    if look.fast_writers < max(FEW_KEYS, look.examined // 100):
        return None
    return f"{look.fast_writers} keys were written by clocks ahead by more than half the delay"
