"""The error of a counter while users write. Pure.

Increments commute, so adding the true error is right whatever happens meanwhile. A look compares
the counter with its expected value. Both are unsteady: the mail server writes the truth first and
the counter last, and recent changes may not be counted yet. Let c be the changes that may be in
flight. Then the true error lies in the **interval** [drift − c, drift + c]. A message without a
decision widens it (`reconcilers.counters.open_message`). (The same sign in several looks proves
nothing: changes in flight are an error with one sign.)

A counter is wrong only if K intervals, at least one delay apart, lie on one side of zero. It is
then wrong by at least the bound nearest to zero. That bound is corrected, once; K new looks follow.

The cheap count behind a look misses a change that was never captured, in every look. The last of
the K looks therefore counts everything again, against the truth. It has an interval like the
others: a plain comparison would take changes in flight for an error.
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
    """A look at a counter row at a time (µs): its drift is stored minus expected.

    ``stored`` did not change during the look. ``round`` is the number of corrections claimed before
    it; a later correction invalidates it. ``whole``: everything was counted again. ``margin`` is
    what the mailboxes may hold beyond ``expected``.
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
        """The least error by sum, if nothing were in flight."""
        return {each: self.bound(each, 0) for each in self.stored}

    def bound(self, of: Sum, changes: int) -> int:
        """The bound of the error's interval that is nearest to zero, 0 if it contains zero."""
        if changes and of is Sum.SIZE:
            return 0  # the sizes of messages in flight are unknown
        drift = self.drift[of]
        least = drift - self.margin.most[of] - changes
        most = drift - self.margin.least[of] + changes
        return least if least > 0 else min(most, 0)


@dataclass(frozen=True, slots=True)
class Interval:
    """By sum the bound nearest to zero, 0 if zero is inside; ``exact``: nothing was in flight."""

    at: Micros
    round: int
    bound: Sums
    exact: bool
    whole: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the look proves each sum right."""
        return self.exact and not any(self.bound.values())


def interval_of(look: Observation, changes: int) -> Interval:
    """The interval of a look if ``changes`` of one message each may have been in flight."""
    bound = {each: look.bound(each, changes) for each in look.stored}
    return Interval(look.at, look.round, bound, changes == 0, look.whole)


@dataclass(frozen=True, slots=True)
class Evidence:
    """When a counter counts as wrong: ``looks`` (K) on one side, among the last ``of``."""

    looks: int = 3
    of: int = 6


def remembered(
    before: Sequence[Interval], newest: Interval, evidence: Evidence
) -> tuple[Interval, ...]:
    """The looks that still count: those of the newest's round since the counter was last right."""
    if newest.agrees:
        return ()
    return (*(each for each in before if each.round == newest.round), newest)[-evidence.of :]


def whole_count_is_due(looks: Sequence[Interval], evidence: Evidence) -> bool:
    """Whether one more look may complete the proof, and so has to count everything."""
    before, kept = evidence.looks - 1, looks[1 - evidence.of :]
    sums = looks[-1].bound if looks else {}
    return not before or any(_one_side(each, kept, before) for each in sums)


def proven_drift(looks: Sequence[Interval], evidence: Evidence) -> Sums:
    """The least error, with its sign, by sum; only for sums that are proven wrong.

    An interval that contains zero counts for no side. Intervals on both sides prove nothing. The
    newest look must have counted everything and exclude zero.
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
            bounds.clear()  # this look proves the counter right
    if len(bounds) < enough or min(bounds) < 0 < max(bounds):
        return 0
    return min(bounds, key=abs)


def correction(wrong: Sums, now: Sums) -> Sums:
    """What to add if the counter is off by ``now``: the smaller error; nothing if signs differ."""
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
"""Why a counter is not lowered: the truth may have a message that the listing lacks."""


def raising(deltas: Sums) -> Sums:
    """The corrections that add. The truth confirms all listed messages, but may have others."""
    return {each: delta for each, delta in deltas.items() if delta > 0}
