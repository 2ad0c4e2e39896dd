"""Whether all messages of a mailbox are known, so that its counters may be lowered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from checkpoints.lineage import Lineage
from reconcilers.rows.memory import group_is_whole
from reconcilers.words.model import Micros


@dataclass(frozen=True, slots=True)
class WholeMailboxes:
    """Asks lineage each time: memory may have ended a moment ago. ``delay`` is D (µs)."""

    lineage: Lineage
    delay: Micros

    def covers(self, mailboxes: Collection[UUID]) -> bool:
        """Each of them was made while every change was heard, or a sweep has read the truth."""
        watching = self.lineage.watching()
        return all(group_is_whole(each, watching, self.delay) for each in mailboxes)
