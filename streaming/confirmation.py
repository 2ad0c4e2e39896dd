"""Step 5, the reads: suspects as they are now, with all that is remembered of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from checkpoints.lineage import Lineage, memory_of, merged
from reconcilers.family import Family, Projection
from reconcilers.model import NOTHING_REMEMBERED, Memory, Row, Seen, Slot, Suspect


class ConfirmTables(Protocol):
    """What step 5 reads; `streaming.tables.Tables` is the real one."""

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        """The projection's rows with write times."""

    def truth_serially(self, messageids: Iterable[UUID]) -> dict[UUID, tuple[Row, ...]]:
        """All truth rows of each message at serial consistency, with write times."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Reads suspects of one projection again."""

    family: Family
    projection: Projection
    tables: ConfirmTables
    lineage: Lineage

    def read(self, suspects: Sequence[Suspect]) -> list[Seen]:
        """Each suspect as it is now: projection FIRST, truth SECOND, at serial consistency.

        The other way round, a write that came between the reads would be overridden by ours.
        """
        slots = [suspect.slot for suspect in suspects]
        rows = self.tables.projection_with_times(self.projection, slots)
        remembered = self.lineage.of_slots(slots)
        claims: dict[Slot, set[UUID]] = {}
        for suspect in suspects:
            named = self._named(rows.get(suspect.slot))
            claims[suspect.slot] = (
                set(suspect.messageids) | remembered.get(suspect.slot, frozenset()) | named
            )
        truths = self.tables.truth_serially({each for ids in claims.values() for each in ids})
        return [self._seen(slot, rows.get(slot), claims[slot], truths) for slot in slots]

    def _named(self, row: Row | None) -> set[UUID]:
        named = row.get(self.projection.identity) if row is not None else None
        return {named} if isinstance(named, UUID) else set()

    def _seen(
        self,
        slot: Slot,
        actual: Row | None,
        claims: set[UUID],
        truths: dict[UUID, tuple[Row, ...]],
    ) -> Seen:
        mailbox, uid = self.family.slot
        claiming = tuple(
            row
            for messageid in claims
            for row in truths.get(messageid, ())
            if (row.get(mailbox), row.get(uid)) == (slot.mailboxid, slot.uid)
        )
        about = self._named(actual) or claims
        present = frozenset(
            here
            for messageid in about
            for row in truths.get(messageid, ())
            if row.get(mailbox) == slot.mailboxid and isinstance(here := row.get(uid), int)
        )
        one_sided = (actual is None) != (not claiming)
        memory = self._memory(slot, about) if one_sided else NOTHING_REMEMBERED
        return Seen(slot, actual, claiming, frozenset(claims), memory, present)

    def _memory(self, slot: Slot, messageids: set[UUID]) -> Memory:
        entries = self.lineage.of_messages(list(messageids))
        deleted = self.lineage.projection_deletes(slot)
        since = self.lineage.watched_since()
        return merged(
            [
                memory_of(
                    slot,
                    each,
                    entries.get(each, []),
                    self.lineage.truth_deletes(each, slot.mailboxid),
                    deleted,
                    since,
                )
                for each in sorted(messageids)
            ]
        )
