"""Both sides of a mailbox: listing and truth, and lineage, which leads from UIDs to messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from uuid import UUID

from checkpoints.lineage import Lineage
from reconcilers.declared.family import Family
from reconcilers.declared.tally import Listed
from reconcilers.rows.memory import group_is_whole
from reconcilers.words.model import KeyValue, Micros, Slot
from streaming.counters.ports import ListTables
from streaming.steps.ports import TruthTables


@dataclass(frozen=True, slots=True)
class BothSides:
    """Where the messages of one keyspace's mailboxes are read. ``delay`` is D (µs)."""

    family: Family
    lists: ListTables
    truth: TruthTables
    lineage: Lineage
    delay: Micros

    def listed_at(self, mailboxid: UUID, uid: int) -> Listed | None:
        """The message that the listing has at a UID, None if it has none."""
        return next(iter(self.lists.listed(mailboxid, uid, uid)), None)

    def known_at(self, mailboxid: UUID, uid: int) -> set[KeyValue]:
        """The messages that were ever seen at a UID."""
        slot = Slot(mailboxid, uid)
        return {entry.source for entry in self.lineage.of_slots([slot]).get(slot, ())}

    def known_from(self, mailboxid: UUID, first: int) -> Iterator[tuple[int, KeyValue]]:
        """The messages that were ever seen at a UID or above it, with their UIDs."""
        for slot, messageid in self.lineage.of_group_from(mailboxid, first):
            uid = slot.key[1]
            assert isinstance(uid, int)
            yield uid, messageid

    def are_whole(self, mailboxes: Collection[UUID]) -> bool:
        """Whether each was created while all changes were received, or swept since.

        Lineage then knows all their messages, so their counters may be lowered. It is read at each
        call, because it may have just ended.
        """
        watching = self.lineage.watching()
        return all(group_is_whole(each, watching, self.delay) for each in mailboxes)
