"""Findings of a sweep that stand for many rows: systematic differences, and rows of the past."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from checkpoints.journal import Journal
from checkpoints.lost_rows import LostRowsStore
from checkpoints.sweeps import SweepRecord
from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding, State
from reconcilers.sweep import lost_rows, systematic
from reconcilers.sweep.lost_rows import COVERED, LostRows, together
from reconcilers.sweep.systematic import EXAMPLES, Extent, Pattern, Spread
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Micros, Slot
from streaming.again.past import LeftRows

log = logging.getLogger("reconciler")

TOLD_SO = (Kind.TRUTH_LOST_ROWS, Kind.PAST_ROWS)
FORGOTTEN_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Told:
    """Reports both kinds of findings: in one family's journal, with a clock (µs)."""

    family: Family
    journal: Journal
    clock: Callable[[], Micros]

    def standing(self, *kinds: Kind) -> list[Finding]:
        """The open findings of these kinds."""
        return [each for each in self.journal.open_findings(self.family) if each.kind in kinds]

    def at(self, found: Finding) -> Finding | None:
        """The open finding at the place of another."""
        return self.journal.recall(self.family, found.projection, [found.slot]).get(found.slot)

    def new(self, found: Finding) -> None:
        """Write and log a new finding."""
        self.journal.put(found)
        log.warning("%s", found.sentence)

    def end(self, found: Finding) -> None:
        """End a finding whose rows are no longer many."""
        self.journal.close(found, State.HEALED, self.clock())
        log.info("%s: %s", State.HEALED.value, found.sentence)


@dataclass(slots=True)
class Systematic:
    """Patterns that very many rows follow. ``told`` are those that this sweep has reported.

    A pattern that a sweep has reported as systematic stays so when the sweep is resumed.
    """

    by: Told
    told: dict[Pattern, Extent] = field(default_factory=dict)
    _standing: dict[tuple[str, Slot], Spread] = field(default_factory=dict)

    def begin(self, sweep: SweepRecord) -> None:
        """Read what a person has accepted, and what this sweep has reported before."""
        for each in self.by.standing(Kind.SYSTEMATIC):
            if each.accepted:
                self._standing[each.projection, each.slot] = Spread.ACCEPTED
            elif each.tried_at >= sweep.began_at:
                self._standing[each.projection, each.slot] = Spread.SYSTEMATIC

    def spread(self, extent: Extent) -> Spread:
        """How far a pattern is spread; a systematic one stays so in this sweep."""
        pattern = extent.pattern
        place = pattern.projection, systematic.place_of(self.by.family, pattern)
        here = Spread.SYSTEMATIC if pattern in self.told else extent.spread
        return self._standing.get(place, here)

    def tell(self, extent: Extent) -> None:
        """Report a pattern, or update its finding while it is systematic and not accepted."""
        self.told[extent.pattern] = extent
        found = systematic.systematic(self.by.family, extent, self.by.clock())
        before = self.by.at(found)
        if before is None:
            self.by.new(found)
        elif extent.spread is Spread.SYSTEMATIC and not before.accepted:
            self.by.journal.touch(replace(found, found_at=before.found_at))

    def ended(self) -> None:
        """Everything was compared: end the findings of patterns that are no longer systematic."""
        family = self.by.family
        still = {(each.projection, systematic.place_of(family, each)) for each in self.told}
        for each in self.by.standing(Kind.SYSTEMATIC):
            if (each.projection, each.slot) not in still:
                self.by.end(each)

    def lines(self) -> Iterator[str]:
        """A line for each pattern that was reported."""
        for pattern, extent in sorted(self.told.items()):
            place = systematic.place_of(self.by.family, pattern)
            if self._standing.get((pattern.projection, place)) is Spread.ACCEPTED:
                yield f"systematic: {extent}: accepted, and handed over"
            else:
                accept = f"--accept {text_of(place)} --system {pattern.projection}"
                yield f"systematic: {extent}: left, until `reconcile findings {accept}`"


@dataclass(slots=True)
class PastTogether:
    """Undecided rows of the past: one finding for each reason with more than ``most`` rows.

    ``told`` counts by reason the rows that this sweep has reported, ``handed_over`` those whose
    reason a person has accepted.
    """

    by: Told
    store: LostRowsStore
    most: int
    told: dict[Kind, int] = field(default_factory=dict)
    handed_over: Counter[Kind] = field(default_factory=Counter)

    def begin(self, sweep: SweepRecord) -> None:
        """Read what this sweep has reported before."""
        family = self.by.family
        for each in self.by.standing(*TOLD_SO):
            reason = lost_rows.reason_at(family, each.slot)
            if reason is not None and not each.accepted and each.tried_at >= sweep.began_at:
                self.told[reason] = 0

    def tell(self, reason: Kind, left: LeftRows) -> None:
        """Report rows left for a reason, or update its finding; an accepted one stays accepted."""
        if left.rows <= self.told.get(reason, -1):
            return
        self.told[reason] = left.rows
        examples = tuple(each.slot for each in left.suspects[:EXAMPLES])
        lost = LostRows(reason, left.rows, len(left.groups), examples, left.born)
        now = self.by.clock()
        found = together(self.by.family, lost, now)
        before = self.by.at(found)
        if before is None:
            self.by.new(found)
            return
        found = replace(
            together(self.by.family, replace(lost, since=before.accepted_at), now),
            found_at=before.found_at,
        )
        self.by.journal.touch(found)

    def ended(self, sweep: SweepRecord) -> None:
        """Everything was compared: end findings and forget rows that were not found again."""
        family = self.by.family
        still = {lost_rows.place_of(family, each) for each in (*self.told, *+self.handed_over)}
        for each in self.by.standing(*TOLD_SO):
            if each.slot not in still:
                self.by.end(each)
        gone = list[Slot]()
        for row in self.store.all(family):
            if row.seen_at < sweep.began_at:
                gone.append(row.slot)
            if len(gone) >= FORGOTTEN_AT_ONCE:
                self.store.forget(family, gone)
                gone.clear()
        self.store.forget(family, gone)

    def lines(self) -> Iterator[str]:
        """A line for each reason: what is left, and what a person has accepted."""
        family = self.by.family
        for reason, number in sorted(self.handed_over.items()):
            yield f"rows of the past, {reason}: {number} accepted, and handed over"
        for reason, number in sorted(self.told.items()):
            place = text_of(lost_rows.place_of(family, reason))
            what = f"rows of the past, {reason}: {number} left"
            if COVERED[reason]:
                accept = f"--accept {place} --system {family.listing.name}"
                yield f"{what}, until `reconcile findings {accept}`"
            else:
                yield f"{what}, until the whole truth is read"
