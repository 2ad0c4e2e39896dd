"""When a counter can be judged that is written behind a queue. Pure.

James updates a quota by a listener on his event bus. Where the bus has a backlog, every user with
new mail shows the same drift in look after look, and what is added then is added twice when the
queue drains. So such a counter is judged only when it, and what it should be, have stood still for
longer than the longest backlog; and all changes that came within that time count as under way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconcilers.counters.drift import Observation
from reconcilers.declared.tally import Sums
from reconcilers.words.model import Micros

GRAIN: Micros = 10_000_000
"""Changes of so long count as those of its end."""
MOST_GRAINS = 1_000
"""Beyond so many the oldest count as younger than they are: that only takes longer."""


@dataclass(frozen=True, slots=True)
class Stillness:
    """What a counter holds and should hold, and since when (µs) both have been so.

    ``came`` is when how many changes came out lately.
    """

    since: Micros
    stored: Sums
    expected: Sums
    came: tuple[tuple[Micros, int], ...] = ()

    def heard(self, changes: int, now: Micros) -> Stillness:
        """So many more changes came out now."""
        end, before = (now // GRAIN + 1) * GRAIN, self.came
        if before and before[-1][0] == end:
            before, changes = before[:-1], changes + before[-1][1]
        came = (*before, (end, changes))
        if len(came) > MOST_GRAINS:
            (_, oldest), (at, next_to_it), *others = came
            came = ((at, oldest + next_to_it), *others)
        return replace(self, came=came)

    def lasts(self, at: Micros, lag: Micros) -> bool:
        """Whether it has lasted for so long by then."""
        return at - self.since >= lag

    def changes_since(self, at: Micros) -> int:
        """Those that came out after it."""
        return sum(number for came, number in self.came if came > at)


def stillness_after(look: Observation, before: Stillness | None) -> Stillness:
    """Goes on while neither side moves."""
    expected = {each: look.expected[each] for each in look.stored}
    if before is None:
        return Stillness(look.at, look.stored, expected)
    if (before.stored, before.expected) == (look.stored, expected):
        return before
    return replace(before, since=look.at, stored=look.stored, expected=expected)
