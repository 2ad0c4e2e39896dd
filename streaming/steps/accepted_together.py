"""What a person has accepted for many rows at once, read before such a row is removed."""

from __future__ import annotations

from dataclasses import dataclass

from checkpoints.journal import Journal
from checkpoints.lost_rows import LostRowsStore
from reconcilers.declared.family import Family
from reconcilers.rows.seen import Seen
from reconcilers.sweep.lost_rows import covered, place_of, reason_of
from reconcilers.words.model import Kind, Micros, Verdict


@dataclass(frozen=True, slots=True)
class AcceptedTogether:
    """What was accepted for one family's listing; see `reconcilers.sweep.lost_rows`."""

    family: Family
    journal: Journal
    store: LostRowsStore

    def kinds(self, seen: Seen, verdict: Verdict, delay: Micros) -> frozenset[Kind]:
        """The kinds accepted for a row that is only reported. ``delay`` is D (µs)."""
        reason = reason_of(self.family, seen, verdict, delay)
        return frozenset() if reason is None else self.at(seen, reason)

    def at(self, seen: Seen, reason: Kind) -> frozenset[Kind]:
        """The kinds accepted for this row, if ``reason`` is among them; else none.

        None either if the row was written after it was counted: nobody was shown that row.
        """
        row = self.store.at(self.family, [seen.slot]).get(seen.slot)
        written = seen.actual.newest if seen.actual is not None else None
        if row is None or (written or 0) > row.counted_at:
            return frozenset()
        place = place_of(self.family, row.reason)
        found = self.journal.recall(self.family, self.family.listing.name, [place])
        return covered(found.get(place), row, reason)
