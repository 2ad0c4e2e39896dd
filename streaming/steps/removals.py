"""Which groups (mailboxes) may lose rows: not those of some size that have lost all their truth.

A truncated or half-restored truth looks just like that; such a mailbox waits for a person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, islice

from reconcilers.family import Family, Projection
from reconcilers.model import KeyValue
from streaming.steps.ports import GroupTables

IDS_A_READ = 100


@dataclass(slots=True)
class Removals:
    """Asks once for each group. Smaller ones than ``empty_truth_min_rows`` may lose every row."""

    family: Family
    projection: Projection
    tables: GroupTables
    empty_truth_min_rows: int
    _trusted: dict[KeyValue, bool] = field(default_factory=dict)

    def may_lose_rows(self, group: KeyValue) -> bool:
        """Whether a group is small, or some row of it has its truth."""
        if group not in self._trusted:
            self._trusted[group] = self._has_truth(group)
        return self._trusted[group]

    def _has_truth(self, group: KeyValue) -> bool:
        """Read on only until a row has its truth: a mailbox may have millions."""
        rows = iter(self.tables.slots_of_group(self.projection, group))
        first = list(islice(rows, self.empty_truth_min_rows))
        if len(first) < self.empty_truth_min_rows:
            return True
        sources = (source for _, source in chain(first, rows) if source is not None)
        while some := list(islice(sources, IDS_A_READ)):
            for truths in self.tables.truth_rows(some).values():
                if any(row.get(self.family.truth.slot[0]) == group for row in truths):
                    return True
        return False
