"""Which mailboxes may lose rows: not those of some size that have lost all their truth.

A truncated or half-restored truth looks just like that; such a mailbox waits for a person.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.family import Family, Projection
from streaming.steps.ports import MailboxTables

IDS_A_READ = 100


@dataclass(slots=True)
class Removals:
    """Asks once for each mailbox. Smaller ones than ``empty_truth_min_rows`` may lose every row."""

    family: Family
    projection: Projection
    tables: MailboxTables
    empty_truth_min_rows: int
    _trusted: dict[UUID, bool] = field(default_factory=dict)

    def may_lose_rows(self, mailboxid: UUID) -> bool:
        """Whether a mailbox is small, or some row of it has its truth."""
        if mailboxid not in self._trusted:
            self._trusted[mailboxid] = self._has_truth(mailboxid)
        return self._trusted[mailboxid]

    def _has_truth(self, mailboxid: UUID) -> bool:
        rows = list(self.tables.mailbox_slots(self.projection, mailboxid))
        if len(rows) < self.empty_truth_min_rows:
            return True
        messageids = [messageid for _, messageid in rows if messageid is not None]
        for start in range(0, len(messageids), IDS_A_READ):
            found = self.tables.truth_rows(messageids[start : start + IDS_A_READ])
            for truths in found.values():
                if any(row.get(self.family.slot[0]) == mailboxid for row in truths):
                    return True
        return False
