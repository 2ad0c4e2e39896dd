"""Held findings come back at a pace, so that no minute repairs more than its limits allow."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from checkpoints.clock import to_micros
from reconcilers.limits.breakers import BreakerLimits
from reconcilers.limits.ceiling import Allowance
from reconcilers.words.model import Kind, ProjectionSlot, Slot
from streaming.pipeline.open_finding import OpenFinding


@dataclass(slots=True)
class HeldLooks:
    """Findings that wait to be looked at again, removals from ``listing`` apart from all others.

    The pace is half of what opens a breaker; the other half is left to new findings. If ``limits``
    is None, all come at once, as in observe mode.
    """

    listing: str
    limits: BreakerLimits | None
    steady: Callable[[], float] = time.monotonic
    _waiting: defaultdict[Kind | None, deque[OpenFinding]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    _known: defaultdict[str, set[Slot]] = field(default_factory=lambda: defaultdict(set))
    _allowed: dict[Kind | None, Allowance] = field(default_factory=dict)

    def add(self, findings: Iterable[OpenFinding]) -> None:
        """Queue these findings; one that is queued already is not queued twice."""
        for finding in findings:
            known = self._known[finding.projection]
            if finding.slot not in known:
                known.add(finding.slot)
                self._waiting[self._lane(finding)].append(finding)

    def take(self, still_open: Callable[[ProjectionSlot], bool]) -> Iterator[ProjectionSlot]:
        """The places that may come back now, in the order in which they were added."""
        for lane, waiting in self._waiting.items():
            allowed = self._allowance(lane)
            most = len(waiting) if allowed is None else allowed.whole
            taken = list(islice(filter(still_open, self._emptied(waiting)), most))
            if allowed is not None:
                self._allowed[lane] = allowed.less(len(taken))
            yield from taken

    def _emptied(self, waiting: deque[OpenFinding]) -> Iterator[ProjectionSlot]:
        """Remove the queued places one by one, as the caller consumes them."""
        while waiting:
            first = waiting.popleft()
            self._known[first.projection].discard(first.slot)
            yield first.projection, first.slot

    def _lane(self, finding: OpenFinding) -> Kind | None:
        removal = finding.kind is Kind.EXTRA_ROW and finding.projection == self.listing
        return finding.kind if removal else None

    def _allowance(self, lane: Kind | None) -> Allowance | None:
        """How many may come now; None: all of them."""
        if self.limits is None:
            return None
        limits = self.limits
        most = limits.suspects_per_minute if lane is None else limits.removals_per_minute
        allowed = self._allowed.get(lane) or Allowance(max(1, most // 2))
        return allowed.at_time(to_micros(self.steady()))
