"""What one look has read up to now: the requested slots, both sides, and lineage."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from reconcilers.rows.memory import Entry
from reconcilers.words.model import (
    NO_PROJECTION,
    Difference,
    KeyValue,
    Kind,
    Micros,
    Row,
    Slot,
    Suspect,
    Wake,
)


@dataclass(slots=True)
class Target:
    """A slot to compare, and what its wakes say of it."""

    slot: Slot
    sources: set[KeyValue] = field(default_factory=set)
    oldest: Micros | None = None
    changes: int = 0
    looked_again: dict[str | None, Kind | None] = field(default_factory=dict)
    """What was suspected, by the projection that is to be looked at again."""

    def add(self, wake: Wake, source: KeyValue | None) -> None:
        """Take in one more wake of this slot."""
        if source is not None:
            self.sources.add(source)
        if self.oldest is None or (wake.oldest is not None and wake.oldest < self.oldest):
            self.oldest = wake.oldest
        if not wake.looked_again:
            self.changes += wake.changes
        else:
            before = self.looked_again.get(wake.projection)
            self.looked_again[wake.projection] = before or wake.suspected

    @property
    def touched(self) -> bool:
        """Whether the slot has changed. An expired cell counts as a change; it has no event."""
        return self.changes > 0 or NO_PROJECTION in self.looked_again

    def suspect(self, projection: str, difference: Difference | None) -> Suspect:
        """The suspect for this slot in ``projection``; its kind is None if nothing differed."""
        return Suspect(
            self.slot,
            frozenset(self.sources),
            None if difference is None else difference.kind,
            projection,
            self.oldest,
            projection in self.looked_again,
            self.looked_again.get(projection),
            columns=() if difference is None else difference.columns,
        )


@dataclass(slots=True)
class LookState:
    """Both sides as read up to now; ``claims`` are truth rows with their source, by slot.

    ``rows`` are those of the listing, ``indexes`` those of the other projections, by name;
    ``unread`` names the indexes that could not be read. ``truths`` has every source whose truth was
    read. ``entries`` are lineage entries by slot, ``remembered`` by source.
    """

    targets: dict[Slot, Target] = field(default_factory=dict)
    rows: dict[Slot, Row] = field(default_factory=dict)
    indexes: dict[str, dict[Slot, Row]] = field(default_factory=dict)
    truths: dict[KeyValue, tuple[Row, ...]] = field(default_factory=dict)
    claims: dict[Slot, list[tuple[KeyValue, Row]]] = field(default_factory=dict)
    entries: dict[Slot, list[Entry]] = field(default_factory=dict)
    remembered: dict[KeyValue, list[Entry]] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)

    def target(self, slot: Slot) -> Target:
        """The slot's target; it is created if there is none."""
        found = self.targets.get(slot)
        if found is None:
            found = self.targets[slot] = Target(slot)
        return found

    def probe(self, unread: str) -> Suspect:
        """One suspect for an index that could not be read: its confirmation reports the table.

        A slot that is to be looked at again there is preferred: it comes back until it can be read.
        """
        targets = list(self.targets.values())
        again = (each for each in targets if unread in each.looked_again)
        return next(again, targets[0]).suspect(unread, None)

    def entry(self, slot: Slot, source: KeyValue) -> Entry | None:
        """The lineage entry of the source at this slot, or None."""
        for entry in self.entries.get(slot, ()):
            if entry.source == source:
                return entry
        return None

    def claimed(self, slot: Slot, sources: Container[KeyValue]) -> tuple[Row, ...]:
        """The truth rows of these sources that claim the slot."""
        claims = self.claims.get(slot, ())
        return tuple([row for source, row in claims if source in sources])
