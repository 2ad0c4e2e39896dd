"""The breakers as the driver keeps them: counted slice by slice, open until a person resumes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from checkpoints.journal import Journal
from reconcilers.limits.breakers import (
    OF_ROWS,
    Breaker,
    BreakerLimits,
    BreakerState,
    SliceCount,
    after_batch,
)
from reconcilers.limits.ceiling import MINUTE
from reconcilers.words.model import Micros, Slot, Suspect
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.metrics import Metrics

log = logging.getLogger("reconciler")


@dataclass(slots=True)
class BreakerWatch:
    """Counts suspects, and opens a breaker in the journal before it decides anything.

    A suspect that comes back counts once in ``once_in`` (µs), since a removal takes two looks;
    before any decision, once in ``put_off_for`` (µs). ``own`` are the breakers that this watch
    opens; it ignores all others.
    """

    journal: Journal
    limits: BreakerLimits
    metrics: Metrics
    once_in: Micros = 2 * MINUTE
    put_off_for: Micros = 2 * MINUTE
    own: Collection[Breaker] = OF_ROWS
    _counted: dict[tuple[str, Slot], Micros] = field(default_factory=dict)
    _state: BreakerState = field(default_factory=BreakerState)

    def recall(self) -> None:
        """Read from the journal which breakers are open; called at the start."""
        self._state = BreakerState(self._open_now())
        self._show()

    @property
    def any_open(self) -> bool:
        """Whether any of its breakers is open."""
        return bool(self._state.opened)

    def count(self, count: SliceCount) -> None:
        """Count a slice before it is admitted; its own count may open a breaker for it."""
        before = self._state
        after = after_batch(before, count, self.limits)
        for breaker in after.opened.keys() - before.opened.keys():
            reason = after.opened[breaker]
            self.journal.open_breaker(breaker, reason, count.opens_at)
            log.error(
                "breaker %s opened: %s; %s pause until `reconcile resume --breaker %s`",
                breaker.value,
                reason,
                breaker.value,
                breaker.value,
            )
        self._state = after  # only now that the journal holds it
        self._show()

    def opens(self, count: SliceCount) -> bool:
        """Whether repairs would be held after this count."""
        return Breaker.REPAIRS in after_batch(self._state, count, self.limits).opened

    def was_counted(self, suspect: Suspect, at: Micros, within: Micros) -> bool:
        """Whether the suspect was counted less than ``within`` from ``at`` (both µs)."""
        before = self._counted.get((suspect.projection, suspect.slot))
        return before is not None and abs(at - before) < within

    def remember(self, places: Iterable[tuple[str, Slot]], at: Micros) -> None:
        """Remember the slots of projections that are counted ``at`` this time (µs)."""
        longest = max(self.once_in, self.put_off_for)
        kept = {each: when for each, when in self._counted.items() if abs(at - when) < longest}
        self._counted = kept | dict.fromkeys(places, at)

    def reason(self, breaker: Breaker) -> Waiting | None:
        """Why the breaker is open, None if it is closed."""
        reason = self._state.opened.get(breaker)
        return (
            None if reason is None else Waiting(Wait.BREAKER, f"breaker {breaker.value}: {reason}")
        )

    def was_resumed(self) -> bool:
        """Whether a person has closed all breakers since the last call; they count from zero then.

        A breaker that another process, such as one that observes, has opened is open here too.
        """
        before, now = self._state.opened, self._open_now()
        if now == before:
            return False
        self._state = replace(self._state, opened=now) if now else BreakerState()
        self._show()
        for breaker in now.keys() - before.keys():
            log.error("breaker %s was opened by another process: %s", breaker.value, now[breaker])
        if now:
            return False
        log.info("breakers closed: looking again at what was held")
        return True

    def _open_now(self) -> dict[Breaker, str]:
        return {each: why for each, why in self.journal.breakers().items() if each in self.own}

    def _show(self) -> None:
        for breaker in self.own:
            self.metrics.breaker.labels(breaker.value).set(breaker in self._state.opened)
