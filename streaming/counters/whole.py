"""Whether lineage knows all messages of a mailbox, so that its counters may be lowered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from checkpoints.lineage import Lineage
from reconcilers.rows.memory import group_is_whole
from reconcilers.words.model import Micros


@dataclass(frozen=True, slots=True)
class WholeMailboxes:
    """Reads lineage at each call, because memory may have just ended. ``delay`` is D (µs)."""

    lineage: Lineage
    delay: Micros

    def covers(self, mailboxes: Collection[UUID]) -> bool:
        """Whether each was created while all changes were received, or swept since."""
        watching = self.lineage.watching()
        return all(group_is_whole(each, watching, self.delay) for each in mailboxes)
