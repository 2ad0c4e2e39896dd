"""By how much a counter is wrong, while users go on writing. Pure.

Increments commute, so adding the true error is right whatever happens at the same time; the art is
to know the error. A look compares a counter with what it should be, and both are unsteady: the mail
server writes the truth first and the counter last, and what changed lately may not be summed up
yet. With c the changes that may be under way, a look yields the **interval** [drift − c, drift + c]
in which the true error lies. A message that nobody has decided on widens it
(`reconcilers.counters.open_message`). (That several looks show the same sign proves nothing: the
noise has one.)

Only when K intervals, at least one delay apart, lie on one side of zero is the counter wrong for
sure; by no less than the bound nearest to zero. That much is corrected, once; then K fresh looks.

The cheap count behind a look misses a change that was never captured, every time: so the last of
the K counts everything anew, against the truth. It is a look like the others, with its interval. (A
count that is held against the counter at once takes what is under way for an error: with K looks
misled by one lost event, that was enough to make a right counter wrong.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconcilers.counters.open_message import NO_MARGIN, Margin
from reconcilers.declared.tally import Sum, Sums
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Wait, Waiting


@dataclass(frozen=True, slots=True)
class Observation:
    """A look at a counter row at a time (µs): its drift, stored minus expected.

    ``stored`` stood still while it was made. ``round`` is the number of corrections that had been
    claimed before it: a later one makes it worthless. ``whole``: everything was counted anew.
    ``margin``: by so much more the mailboxes may hold than ``expected``, what they list.
    """

    at: Micros
    round: int
    stored: Sums
    expected: Sums
    whole: bool = False
    margin: Margin = NO_MARGIN

    @property
    def drift(self) -> Sums:
        """Stored minus expected, for each sum that the row holds."""
        return {each: value - self.expected[each] for each, value in self.stored.items()}

    @property
    def off(self) -> Sums:
        """By how much the counter is off at least, as if nothing was under way."""
        return {each: self.bound(each, 0) for each in self.stored}

    def bound(self, of: Sum, changes: int) -> int:
        """The bound nearest to zero of where the error is, 0 if the interval contains zero."""
        if changes and of is Sum.SIZE:
            return 0  # how large the messages are that are under way is not known
        drift = self.drift[of]
        least = drift - self.margin.most[of] - changes
        most = drift - self.margin.least[of] + changes
        return least if least > 0 else min(most, 0)


@dataclass(frozen=True, slots=True)
class Interval:
    """What a look has shown for sure: the bound of each interval that is nearest to zero.

    0 where the interval contains zero. ``exact`` when nothing was under way.
    """

    at: Micros
    round: int
    bound: Sums
    exact: bool
    whole: bool = False

    @property
    def agrees(self) -> bool:
        """Whether each sum was right, for sure."""
        return self.exact and not any(self.bound.values())


def interval_of(look: Observation, changes: int) -> Interval:
    """The look, given how many changes may have been under way (each of one message)."""
    bound = {each: look.bound(each, changes) for each in look.stored}
    return Interval(look.at, look.round, bound, changes == 0, look.whole)


@dataclass(frozen=True, slots=True)
class Evidence:
    """When a counter counts as wrong: ``looks`` (K) on one side, of the last ``of``."""

    looks: int = 3
    of: int = 6


def remembered(
    before: Sequence[Interval], newest: Interval, evidence: Evidence
) -> tuple[Interval, ...]:
    """The looks that still count: of the newest's round, since the counter was last right."""
    if newest.agrees:
        return ()
    return (*(each for each in before if each.round == newest.round), newest)[-evidence.of :]


def whole_count_is_due(looks: Sequence[Interval], evidence: Evidence) -> bool:
    """Whether one more look may be enough: it has to count everything."""
    before, kept = evidence.looks - 1, looks[1 - evidence.of :]
    sums = looks[-1].bound if looks else {}
    return not before or any(_one_side(each, kept, before) for each in sums)


def proven_drift(looks: Sequence[Interval], evidence: Evidence) -> Sums:
    """By how much each sum is wrong at least (its sign tells the side); only those that are.

    An interval that contains zero speaks for no side; one on the other side against both. The
    newest look must be one that tells, and have counted everything.
    """
    if not looks or not looks[-1].whole:
        return {}
    off = [each for each, bound in looks[-1].bound.items() if bound]
    return {each: bound for each in off if (bound := _one_side(each, looks, evidence.looks))}


def _one_side(of: Sum, looks: Iterable[Interval], enough: int) -> int:
    bounds: list[int] = []
    for look in looks:
        if look.bound[of]:
            bounds.append(look.bound[of])
        elif look.exact:
            bounds.clear()  # it was right then
    if len(bounds) < enough or min(bounds) < 0 < max(bounds):
        return 0
    return min(bounds, key=abs)


def correction(wrong: Sums, now: Sums) -> Sums:
    """What to add, given how far it is off now: never more than either shows.

    Nothing if they differ: the looks are a while ago, somebody else may have corrected it.
    """
    deltas = {}
    for each, bound in wrong.items():
        drift = now[each]
        if (drift > 0) == (bound > 0) and drift:
            deltas[each] = -min(bound, drift, key=abs)
    return deltas


LIST_MAY_LACK_ROWS = Waiting(
    Wait.LISTING_INCOMPLETE,
    "the list may lack rows: a full comparison is needed, `reconcile sweep`",
)
"""Why a counter is not lowered: a message that nobody names may be in the truth all the same."""


def raising(deltas: Sums) -> Sums:
    """Those that add. Every message that the list names was held against the truth.

    So a sum below theirs is too low for sure; one above it may count a message that nobody names.
    """
    return {each: delta for each, delta in deltas.items() if delta > 0}
