"""Which groups (mailboxes) may lose rows: not those that have lost all, or most, of their truth.

A truncated or half-restored truth looks just like that; such a mailbox waits for a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from reconcilers.family import Family, Projection
from reconcilers.model import KeyValue
from streaming.steps.ports import GroupTables

IDS_A_READ = 100
EXAMINED = 1000
"""So many rows of a group say what most of them are: it may have millions."""


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
        """Whether a group is small, or has not lost most of its truth."""
        if group not in self._trusted:
            self._trusted[group] = self._is_trusted(group)
        return self._trusted[group]

    def _is_trusted(self, group: KeyValue) -> bool:
        """Read on until it is known, or `EXAMINED` have been read and one has its truth."""
        rows = iter(self.tables.slots_of_group(self.projection, group))
        first = list(islice(rows, self.empty_truth_min_rows))
        if len(first) < self.empty_truth_min_rows:
            return True
        sources = (source for _, source in chain(first, rows) if source is not None)
        have = lost = 0
        while some := list(islice(sources, IDS_A_READ)):
            found = sum(self._have_truth(some, group))
            have, lost = have + found, lost + len(some) - found
            if have > EXAMINED // 2 or (have and have + lost >= EXAMINED):
                break
        return have > 0 and (lost < self.empty_truth_min_rows or lost <= have)

    def _have_truth(self, sources: Sequence[KeyValue], group: KeyValue) -> Iterator[bool]:
        truths = self.tables.truth_rows(sources)
        place = self.family.truth.slot[0]
        for source in sources:
            yield any(row.get(place) == group for row in truths.get(source, ()))
