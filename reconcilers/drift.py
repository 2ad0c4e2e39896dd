"""By how much a counter is wrong, while users go on writing. Pure.

Increments commute, so adding the true error is right whatever happens at the same time; the art is
to know the error. A look compares a counter with what it should be, and both are unsteady: the mail
server writes the truth first and the counter last, and what changed lately may not be summed up
yet. With c the changes that may be under way, a look yields the **interval** [drift − c, drift + c]
in which the true error lies. (That several looks show the same sign proves nothing: the noise has
one.)

Only when K intervals, at least one delay apart, lie on one side of zero is the counter wrong for
sure; by no less than the bound nearest to zero. That much is corrected, once; then K fresh looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reconcilers.model import Micros
from reconcilers.tally import Sum, Sums


@dataclass(frozen=True, slots=True)
class Look:
    """A look at a counter row at a time (µs): its drift, stored minus expected.

    ``stored`` stood still while it was made. ``round`` is the number of corrections that had been
    claimed before it: a later one makes it worthless.
    """

    at: Micros
    round: int
    stored: Sums
    expected: Sums

    @property
    def drift(self) -> Sums:
        """Stored minus expected, for each sum that the row holds."""
        return {each: value - self.expected[each] for each, value in self.stored.items()}


@dataclass(frozen=True, slots=True)
class Measured:
    """What a look has shown for sure: the bound of each interval that is nearest to zero.

    0 where the interval contains zero. ``exact`` when nothing was under way.
    """

    at: Micros
    round: int
    least: Sums
    exact: bool

    @property
    def agrees(self) -> bool:
        """Whether each sum was right, for sure."""
        return self.exact and not any(self.least.values())


def measured(look: Look, changes: int) -> Measured:
    """The look, given how many changes may have been under way (each of one message)."""
    least = {each: _least(each, drift, changes) for each, drift in look.drift.items()}
    return Measured(look.at, look.round, least, exact=changes == 0)


def _least(of: Sum, drift: int, changes: int) -> int:
    if changes and of is Sum.SIZE:
        return 0  # how large the messages are that are under way is not known
    if abs(drift) <= changes:
        return 0
    return drift - changes if drift > 0 else drift + changes


@dataclass(frozen=True, slots=True)
class Evidence:
    """When a counter counts as wrong: ``looks`` (K) on one side, of the last ``of``."""

    looks: int = 3
    of: int = 6


def remembered(
    before: Sequence[Measured], newest: Measured, evidence: Evidence
) -> tuple[Measured, ...]:
    """The looks that still count: of the newest's round, since the counter was last right."""
    if newest.agrees:
        return ()
    return (*(each for each in before if each.round == newest.round), newest)[-evidence.of :]


def wrong_by(looks: Sequence[Measured], evidence: Evidence) -> Sums:
    """By how much each sum is wrong at least (its sign tells the side); only those that are.

    An interval that contains zero speaks for no side; one on the other side against both.
    """
    sums = looks[-1].least if looks else {}
    return {each: least for each in sums if (least := _one_side(each, looks, evidence))}


def _one_side(of: Sum, looks: Iterable[Measured], evidence: Evidence) -> int:
    told: list[int] = []
    for look in looks:
        if look.least[of]:
            told.append(look.least[of])
        elif look.exact:
            told.clear()  # it was right then
    if len(told) < evidence.looks or min(told) < 0 < max(told):
        return 0
    return min(told, key=abs)


def correction(wrong: Sums, recounted: Sums) -> Sums:
    """What to add, given a recount's drift: never more than either shows, nothing if they differ.

    The recount also sees what somebody else has corrected since the looks.
    """
    deltas = {}
    for each, least in wrong.items():
        drift = recounted[each]
        if (drift > 0) == (least > 0) and drift:
            deltas[each] = -min(least, drift, key=abs)
    return deltas
