"""When looks at counters are made, and what proves an error."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.counters.drift import Evidence
from reconcilers.declared.tally import Tally
from reconcilers.words.model import Micros

LOOKS_A_LAG = 6


@dataclass(frozen=True, slots=True)
class LookRules:
    """When looks are made (µs), and which ``evidence`` of them proves an error.

    ``delay`` is D, ``window`` how long changes are gathered for one glance. A quota is written by
    ``root_lag`` after the truth at the latest.
    """

    delay: Micros
    window: Micros
    evidence: Evidence
    root_lag: Micros = 0

    def lag(self, tally: Tally) -> Micros:
        """For how long a counter has to stand still before it is judged."""
        return self.root_lag if tally.per_quota_root else 0

    def apart(self, tally: Tally) -> Micros:
        """How far apart the looks at a counter are at least."""
        return max(self.delay, self.lag(tally) // LOOKS_A_LAG)
