"""Held findings come back at a pace, so that no minute repairs more than its limits allow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from checkpoints.clock import to_micros
from reconcilers.ceiling import Allowance
from reconcilers.finding import Finding
from reconcilers.model import Kind, Slot
from reconcilers.policy import BreakerLimits

Place = tuple[str, Slot]


@dataclass(slots=True)
class HeldLooks:
    """Findings that wait to be looked at again, removals from ``listing`` apart from all others.

    The pace is half of what opens a breaker: the other half is left to what is found meanwhile.
    ``limits``: None lets all of them come at once, as where nothing is written.
    """

    listing: str
    limits: BreakerLimits | None
    steady: Callable[[], float] = time.monotonic
    _waiting: dict[Kind | None, dict[Place, None]] = field(default_factory=dict)
    _allowed: dict[Kind | None, Allowance] = field(default_factory=dict)

    def add(self, findings: Iterable[Finding]) -> None:
        """These are to come back; those that wait already do so once."""
        for finding in findings:
            place = finding.projection, finding.slot
            self._waiting.setdefault(self._lane(finding), {})[place] = None

    def take(self, still_open: Callable[[Place], bool]) -> Iterator[Place]:
        """Those that may come back now, in the order in which they were added."""
        for lane, waiting in self._waiting.items():
            for place in [each for each in waiting if not still_open(each)]:
                waiting.pop(place)
            for place in list(waiting)[: self._number(lane, len(waiting))]:
                waiting.pop(place)
                yield place

    def _lane(self, finding: Finding) -> Kind | None:
        removal = finding.kind is Kind.EXTRA_ROW and finding.projection == self.listing
        return finding.kind if removal else None

    def _number(self, lane: Kind | None, waiting: int) -> int:
        if self.limits is None:
            return waiting
        limits = self.limits
        most = limits.suspects_per_minute if lane is None else limits.removals_per_minute
        allowed = self._allowed.get(lane) or Allowance(max(1, most // 2))
        allowed = allowed.at_time(to_micros(self.steady()))
        number = min(waiting, allowed.whole)
        self._allowed[lane] = allowed.less(number)
        return number
