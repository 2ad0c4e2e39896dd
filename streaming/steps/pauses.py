"""Whether a person has paused repairs: asked again before each write, never older than a second."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from checkpoints.lease import time_awake_or_asleep
from checkpoints.pauses import Pauses
from reconcilers.model import Micros
from reconcilers.pause import Pause, why_paused

OLDEST = 1.0
"""So old (s) an answer may be when a write is sent."""
TRIES = 2
UNKNOWN = "whether repairs are paused is not known: our keyspace takes longer than a second"


@dataclass(slots=True)
class PauseWatch:
    """One process's. ``steady`` (s) only goes up; the age of an answer counts from its question.

    So a write that was let through is sent within `OLDEST` of a moment at which nothing was paused.
    """

    pauses: Pauses
    clock: Callable[[], Micros]
    steady: Callable[[], float] = time_awake_or_asleep
    _known: tuple[float, tuple[Pause, ...]] = (float("-inf"), ())

    def why(self, names: Collection[str]) -> str | None:
        """Why repairs of one of these wait (`reconcilers.pause`), None when they may be written.

        Raises `Retryable` when our keyspace does not answer: then nothing may be written either.
        """
        if not self._asked():
            return UNKNOWN
        return why_paused(self._known[1], names, self.clock())

    def standing(self) -> tuple[Pause, ...]:
        """Those that stand now, as last asked. Raises `Retryable`."""
        self._asked()
        now = self.clock()
        return tuple(each for each in self._known[1] if each.stands(now))

    def _asked(self) -> bool:
        """Whether an answer is known that is young enough; asked for anew where it is not."""
        for _ in range(TRIES):
            if self._is_fresh():
                return True
            self._ask()
        return self._is_fresh()

    def _is_fresh(self) -> bool:
        return self.steady() - self._known[0] <= OLDEST

    def _ask(self) -> None:
        asked = self.steady()
        self._known = asked, self.pauses.standing()
