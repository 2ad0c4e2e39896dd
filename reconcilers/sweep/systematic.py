"""A column that differs in very many rows is one finding, for a person, and not thousands. Pure.

Rows of the listing that differ in one column, in one way, follow a *pattern*: a column that an
upgrade of James added is null in every older row. How far each has spread is asked of the rows that
were compared so far. A row may follow several patterns; then it is

==================================================  ============================================
how far its patterns have spread                    the row
==================================================  ============================================
one of them is rare: in 1 % of the rows, or less    is handed over, as what differs without one
each is in more; one in fewer than 1,000 rows yet   waits: nobody knows yet
each is systematic: in more, and in 1,000 or more   is left until a person has accepted them
==================================================  ============================================

What a person has accepted does not count; a row that follows nothing else is handed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding, State
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Micros, Slot, Suspect, number_of
from reconcilers.words.waiting import Wait, Waiting

LEAST_ROWS, ONE_IN = 1_000, 100
EXAMPLES = 3


@dataclass(frozen=True, slots=True, order=True)
class Pattern:
    """The rows of a projection that differ in one column, in one way."""

    projection: str
    kind: Kind
    column: str


class Spread(Enum):
    """How far a pattern has spread."""

    RARE = "rare"
    UNDECIDED = "undecided"
    SYSTEMATIC = "systematic"
    ACCEPTED = "accepted"


class Fate(Enum):
    """What a sweep does with a row that differs."""

    HANDED_OVER = "handed over"
    WAITS = "waits"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Extent:
    """A pattern was found in so many of the rows that were compared, at these slots, say."""

    pattern: Pattern
    found: int
    rows: int
    examples: tuple[Slot, ...] = ()

    @property
    def spread(self) -> Spread:
        """How far it has spread by these numbers."""
        if self.found * ONE_IN <= self.rows:
            return Spread.RARE
        return Spread.SYSTEMATIC if self.found >= LEAST_ROWS else Spread.UNDECIDED

    def __str__(self) -> str:
        """In words."""
        pattern, share = self.pattern, 100 * self.found / max(self.rows, 1)
        return (
            f"{pattern.kind} in {pattern.column}: {self.found} of {self.rows} rows of"
            f" {pattern.projection} that were compared ({share:.3g} %)"
        )


def patterns_of(family: Family, suspect: Suspect) -> tuple[Pattern, ...]:
    """Those that it follows; none where a row is missing or too much: that is in no column.

    Nor in an index: it has keys only, or one row that collects what many rows of the truth add.
    """
    if suspect.kind is None or suspect.projection != family.listing.name:
        return ()
    return tuple(Pattern(suspect.projection, suspect.kind, each) for each in suspect.columns)


def fate(spreads: Iterable[Spread]) -> Fate:
    """That of a row, by how far each of its patterns has spread."""
    left = {each for each in spreads if each is not Spread.ACCEPTED}
    if not left or Spread.RARE in left:
        return Fate.HANDED_OVER
    return Fate.WAITS if Spread.UNDECIDED in left else Fate.LEFT


def place_of(family: Family, pattern: Pattern) -> Slot:
    """Where its finding stands: one place for each kind and column, and no row's."""
    return family.place_of_number(number_of(f"{pattern.kind} {pattern.column}"))


def systematic(family: Family, extent: Extent, now: Micros) -> Finding:
    """The finding of all rows that follow a pattern; ``tried_at`` is when a sweep last found it.

    It is looked at by sweeps only. ``now`` is µs.
    """
    place, pattern = place_of(family, extent.pattern), extent.pattern
    such = ", ".join(text_of(each) for each in extent.examples)
    told = f"{extent}, {such} among them. "
    if pattern.kind is Kind.INCOMPLETE_IN_BOTH:
        told += "Both tables lack it: nothing is to be repaired, and counters count these rows"
    else:
        told += (
            "Where nothing else differs, none of these is repaired before a person accepts it:"
            f" `reconcile findings --accept {text_of(place)} --system {pattern.projection}`, then"
            " `reconcile sweep` hands them over to the stream"
        )
    return Finding(
        family=family.name,
        projection=pattern.projection,
        slot=place,
        source=None,
        kind=Kind.SYSTEMATIC,
        state=State.HELD,
        sentence=told,
        found_at=now,
        tried_at=now,
        waits=Waiting(Wait.DECISION, ""),
    )
