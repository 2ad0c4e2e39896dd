"""A counter that is due, with its looks so far and the look that waits for the frontier."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.capture.frontier import Marks
from reconcilers.counters.drift import Interval, Observation
from reconcilers.counters.stillness import Stillness
from reconcilers.words.model import Micros
from streaming.counters.counter_row import CounterRow
from streaming.counters.observe import WholeLook


@dataclass(slots=True)
class WaitingLook:
    """A look that waits until the frontier has passed its ``marks``.

    The changes of ``past`` were released before the look, ``changes`` since then.
    """

    observation: Observation
    marks: Marks
    past: Counter[UUID]
    changes: Counter[UUID] = field(default_factory=Counter)


@dataclass(slots=True)
class PendingCounter:
    """A counter that is ``due`` at a time (µs).

    ``still`` tracks since when neither side has moved; ``counting`` is an unfinished whole count.
    """

    counter: CounterRow
    due: Micros
    looks: tuple[Interval, ...] = ()
    waiting: WaitingLook | None = None
    mailboxes: frozenset[UUID] = frozenset()
    in_doubt: bool = False
    still: Stillness | None = None
    counting: WholeLook | None = None


MOST_PENDING = 200_000
"""Counters that are pending of each tally, so that none holds up the others."""


class PendingCounters(dict[tuple[str, UUID | str], PendingCounter]):
    """Pending counters by tally and key. Add by ``add`` and remove by ``del`` only."""

    def __init__(self) -> None:
        super().__init__()
        self.of_tally: Counter[str] = Counter()
        """The number of each tally that ever had one."""
        self._refused: set[str] = set()

    @property
    def has_room(self) -> bool:
        """Whether one of the tallies has room for a counter."""
        return min(self.of_tally.values(), default=0) < MOST_PENDING

    def add(self, row: CounterRow, due: Micros) -> PendingCounter | None:
        """The pending counter, added if it is not; None if its tally has no room."""
        place = row.tally.name, row.key
        if place not in self:
            if self.of_tally[place[0]] >= MOST_PENDING:
                self._refused.add(place[0])
                return None
            self[place] = PendingCounter(row, due)
            self.of_tally[place[0]] += 1
        return self[place]

    def has_room_again(self) -> bool:
        """Whether a tally that had no room for a counter has some now; then it is told once."""
        found = {each for each in self._refused if self.of_tally[each] <= MOST_PENDING // 2}
        self._refused -= found
        return bool(found)

    def __delitem__(self, place: tuple[str, UUID | str]) -> None:
        super().__delitem__(place)
        self.of_tally[place[0]] -= 1
