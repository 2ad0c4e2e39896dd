"""Which groups (mailboxes) may lose rows: not those that have lost all, or most, of their truth.

A truncated or half-restored truth looks just like that; such a mailbox waits for a person.

Of a large mailbox ten parts are read: the oldest and the newest rows, and between them parts that
begin at UIDs an equal distance apart. One part that has lost most of its truth is enough. No loss
of these kinds is overlooked, wherever its rows lie:

- a truth that was truncated: every part has lost all;
- one that was restored from an older copy: what it lacks are the newest rows, the last part;
- a period that is missing: a ninth of the UIDs in a row hold the beginning of a part at least;
- ranges of tokens that are missing, as of nodes without data: messages have random ids, so rows are
  lost anywhere alike, and where more than half are, the parts show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from checkpoints.journal import Journal
from reconcilers.declared.family import Family, Projection
from reconcilers.words.model import KeyValue, Kind, Slot
from streaming.steps.ports import GroupTables, Listed

IDS_A_READ = 100
EXAMINED = 1000
"""So many rows of a group say what most of them are: it may have millions."""
PARTS = 10
"""In which these are read of a larger group."""


@dataclass(slots=True)
class Removals:
    """Asks once for each group.

    One of fewer rows than ``empty_truth_min_rows`` may lose every row, one that has lost fewer
    may lose these.
    """

    family: Family
    projection: Projection
    tables: GroupTables
    empty_truth_min_rows: int
    _trusted: dict[KeyValue, bool] = field(default_factory=dict)

    def may_lose_rows(self, group: KeyValue) -> bool:
        """Whether a group is small, or has not lost most of its truth, nor of a part of it."""
        if group not in self._trusted:
            self._trusted[group] = self._is_trusted(group)
        return self._trusted[group]

    def _is_trusted(self, group: KeyValue) -> bool:
        rows = iter(self.tables.slots_of_group(self.projection, group))
        whole = max(EXAMINED, self.empty_truth_min_rows)
        first = list(islice(rows, whole + 1))
        if len(first) < self.empty_truth_min_rows:
            return True
        if len(first) <= whole:
            return self._has_most(first, group)
        return all(self._has_most(part, group) for part in self._parts(group, first))

    def _parts(self, group: KeyValue, first: Sequence[Listed]) -> Iterator[Sequence[Listed]]:
        """The newest rows first: a truth that was restored lacks them."""
        size = max(EXAMINED // PARTS, 2 * self.empty_truth_min_rows)
        some = self.tables.some_slots
        newest = list(some(self.projection, group, size, None))
        yield newest
        if not newest:  # emptied since the first rows were read: nothing is left to lose
            return
        yield first[:size]
        begins, ends = first[0][0].key[1], max(slot.key[1] for slot, _ in newest)
        for begin in between(begins, ends, PARTS - 2):
            yield list(some(self.projection, group, size, begin))

    def _has_most(self, rows: Sequence[Listed], group: KeyValue) -> bool:
        """Whether few of these rows have lost their truth, or no more than have it."""
        sources = [source for _, source in rows if source is not None]
        have = 0
        for begin in range(0, len(sources), IDS_A_READ):
            have += sum(self._have_truth(sources[begin : begin + IDS_A_READ], group))
            if 2 * have > len(sources):
                return True
        lost = len(sources) - have
        few = self.empty_truth_min_rows
        return (have > 0 or len(rows) < few) and (lost < few or lost <= have)

    def _have_truth(self, sources: Sequence[KeyValue], group: KeyValue) -> Iterator[bool]:
        truths = self.tables.truth_rows(sources)
        place = self.family.truth.slot[0]
        for source in sources:
            yield any(row.get(place) == group for row in truths.get(source, ()))


def may_be_unread(journal: Journal, family: Family, slot: Slot) -> bool:
    """Whether a finding tells that the slot, or its whole group, cannot be read."""
    places = [slot, family.whole_group(slot.group)]
    found = journal.recall(family, family.listing.name, places)
    return any(each.kind is Kind.UNREADABLE for each in found.values())


def between(first: object, last: object, number: int) -> Iterator[int]:
    """So many numbers an equal distance apart, both ends left out; none of what is no number."""
    if isinstance(first, int) and isinstance(last, int):
        for each in range(1, number + 1):
            yield first + (last - first) * each // (number + 1)
