"""A column that differs in very many rows becomes one finding for a person. Pure.

Rows of the listing that differ in one column, in one way, follow a *pattern*. For example, a column
that an upgrade of James added is null in every older row. The spread of a pattern is its share of
the rows that were compared so far. A row may follow several patterns. It is

==================================================  ============================================
the spread of its patterns                          the row
==================================================  ============================================
one is rare: in 1 % of the rows, or less            is handed over, like a row without a pattern
each is in more; one in fewer than 1,000 rows yet   waits: its spread is undecided
each is systematic: in more, and in 1,000 or more   is left until a person accepts them
==================================================  ============================================

An accepted pattern does not count. A row without any other pattern is handed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import product

from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding, State
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Micros, Slot, Suspect, number_of
from reconcilers.words.waiting import Wait, Waiting

IN_A_COLUMN = (Kind.DIFFERING_CELLS, Kind.INCOMPLETE_TRUTH_ROW, Kind.INCOMPLETE_IN_BOTH)
"""The kinds of differences that name columns."""
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
    """The number of rows in which a pattern was found, of those compared, with examples."""

    pattern: Pattern
    found: int
    rows: int
    examples: tuple[Slot, ...] = ()

    @property
    def spread(self) -> Spread:
        """The spread that these numbers show."""
        if self.found * ONE_IN <= self.rows:
            return Spread.RARE
        return Spread.SYSTEMATIC if self.found >= LEAST_ROWS else Spread.UNDECIDED

    def __str__(self) -> str:
        pattern, share = self.pattern, 100 * self.found / max(self.rows, 1)
        return (
            f"{pattern.kind} in {pattern.column}: {self.found} of {self.rows} rows of"
            f" {pattern.projection} that were compared ({share:.3g} %)"
        )


def patterns_of(family: Family, suspect: Suspect) -> tuple[Pattern, ...]:
    """The patterns of a suspect; none for a missing or extra row, and none in an index."""
    if suspect.kind is None or suspect.projection != family.listing.name:
        return ()
    return tuple(Pattern(suspect.projection, suspect.kind, each) for each in suspect.columns)


def fate(spreads: Iterable[Spread]) -> Fate:
    """What happens to a row, by the spread of each of its patterns."""
    left = {each for each in spreads if each is not Spread.ACCEPTED}
    if not left or Spread.RARE in left:
        return Fate.HANDED_OVER
    return Fate.WAITS if Spread.UNDECIDED in left else Fate.LEFT


def place_of(family: Family, pattern: Pattern) -> Slot:
    """The slot of a pattern's finding: one for each kind and column, and no row's."""
    return family.place_of_number(number_of(f"{pattern.kind} {pattern.column}"))


def all_places(family: Family) -> frozenset[Slot]:
    """The slots of the findings of all patterns that a row of the listing can follow."""
    columns = {*family.listing.columns, *family.truth.required}
    patterns = (Pattern(family.listing.name, *each) for each in product(IN_A_COLUMN, columns))
    return frozenset(place_of(family, each) for each in patterns)


def systematic(family: Family, extent: Extent, now: Micros) -> Finding:
    """The finding of a pattern, for sweeps; ``tried_at`` is when it was last found, ``now`` µs."""
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
