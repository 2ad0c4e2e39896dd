"""When counters are looked at, and how much evidence proves an error."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.counters.drift import Evidence
from reconcilers.declared.tally import Tally
from reconcilers.words.model import Micros

LOOKS_A_LAG = 6


@dataclass(frozen=True, slots=True)
class LookRules:
    """When looks are made (all times in µs), and how much ``evidence`` proves an error.

    ``delay`` is D. Changes within ``window`` share one screening. James writes a quota at most
    ``root_lag`` after the truth, and any counter at most ``latest`` after it.
    """

    delay: Micros
    window: Micros
    evidence: Evidence
    root_lag: Micros = 0
    latest: Micros = 0

    def lag(self, tally: Tally) -> Micros:
        """How long (µs) a counter must not move before it is judged."""
        return self.root_lag if tally.per_quota_root else 0

    def apart(self, tally: Tally) -> Micros:
        """The shortest time (µs) between two looks at a counter."""
        return max(self.delay, self.lag(tally) // LOOKS_A_LAG)
