"""When a counter that is written behind a queue can be judged. Pure.

James updates a quota by a listener on its event bus. If the bus has a backlog, every user with new
mail shows the same drift in each look. What is then added is added twice when the queue drains. The
counter is therefore judged only if it and its expected value have not changed for longer than the
longest backlog. All changes within that time count as in flight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconcilers.counters.drift import Observation
from reconcilers.declared.tally import Sums
from reconcilers.words.model import Micros

GRAIN: Micros = 10_000_000
"""Changes are counted in steps of this length, each at its end."""
MOST_GRAINS = 1_000
"""Beyond this number the two oldest steps become one, at the later time: a judgement is delayed."""


@dataclass(frozen=True, slots=True)
class Stillness:
    """Stored and expected values, unchanged since (µs); ``came`` has changes by time (µs)."""

    since: Micros
    stored: Sums
    expected: Sums
    came: tuple[tuple[Micros, int], ...] = ()

    def heard(self, changes: int, now: Micros) -> Stillness:
        """This value with ``changes`` more, released ``now`` (µs)."""
        end, before = (now // GRAIN + 1) * GRAIN, self.came
        if before and before[-1][0] == end:
            before, changes = before[:-1], changes + before[-1][1]
        came = (*before, (end, changes))
        if len(came) > MOST_GRAINS:
            (_, oldest), (at, next_to_it), *others = came
            came = ((at, oldest + next_to_it), *others)
        return replace(self, came=came)

    def lasts(self, at: Micros, lag: Micros) -> bool:
        """Whether neither value has changed for ``lag`` (µs) before ``at`` (µs)."""
        return at - self.since >= lag

    def changes_since(self, at: Micros) -> int:
        """The number of changes released after ``at`` (µs)."""
        return sum(number for came, number in self.came if came > at)


def stillness_after(look: Observation, before: Stillness | None) -> Stillness:
    """The stillness after a look; it starts again if either value has changed."""
    expected = {each: look.expected[each] for each in look.stored}
    if before is None:
        return Stillness(look.at, look.stored, expected)
    if (before.stored, before.expected) == (look.stored, expected):
        return before
    return replace(before, since=look.at, stored=look.stored, expected=expected)
