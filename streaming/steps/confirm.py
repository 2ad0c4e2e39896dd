"""Step 5, the reads: suspects as they are now, with all that is remembered of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from checkpoints.lineage import Entry, Lineage, memory_of, merged
from reconcilers.confirm import SECOND
from reconcilers.errors import Refused
from reconcilers.family import Family, Projection
from reconcilers.model import NOTHING_REMEMBERED, Memory, Micros, Row, Seen, Slot, Suspect
from streaming.steps.ports import ConfirmTables


class Unreadable(Refused):
    """An index may not be read; without the truth and the list of messages nothing is judged."""


@dataclass(frozen=True, slots=True)
class Confirmer:
    """Reads suspects of one projection again; the tolerance (µs) is that of `Moment`."""

    family: Family
    projection: Projection
    tables: ConfirmTables
    lineage: Lineage
    delete_clock_tolerance: Micros = 10 * SECOND

    def read(self, suspects: Sequence[Suspect]) -> list[Seen]:
        """Each suspect as it is now: projection FIRST, truth SECOND, at serial consistency.

        The other way round, a write that came between the reads would be overridden by ours.
        Raises `Unreadable` when an index refuses.
        """
        slots = [suspect.slot for suspect in suspects]
        try:
            rows = self.tables.projection_with_times(self.projection, slots)
        except Refused as refused:
            if not self.projection.is_index:
                raise
            raise Unreadable(str(refused)) from refused
        listed = rows
        if self.projection.is_index:
            listed = self.tables.projection_rows(self.family.listing, slots)
        remembered = self.lineage.of_slots(slots)
        claims: dict[Slot, set[UUID]] = {}
        for suspect in suspects:
            message = self.family.listing.message_of(listed.get(suspect.slot))
            named = set() if message is None else {message}
            entries = remembered.get(suspect.slot, ())
            claims[suspect.slot] = (
                set(suspect.messageids) | {entry.messageid for entry in entries} | named
            )
        truths = self.tables.truth_serially({each for ids in claims.values() for each in ids})
        return [
            self._seen(
                suspect,
                rows.get(suspect.slot),
                claims[suspect.slot],
                truths,
                listed.get(suspect.slot),
            )
            for suspect in suspects
        ]

    def _seen(
        self,
        suspect: Suspect,
        actual: Row | None,
        claims: set[UUID],
        truths: dict[UUID, tuple[Row, ...]],
        listed: Row | None,
    ) -> Seen:
        slot, (mailbox, uid) = suspect.slot, self.family.slot
        here = [
            row
            for messageid in claims
            for row in truths.get(messageid, ())
            if row.get(mailbox) == slot.mailboxid
        ]
        claiming = tuple(row for row in here if row.get(uid) == slot.uid)
        one_sided = (actual is None) != (not claiming)
        memory = self._memory(slot, claims) if one_sided else NOTHING_REMEMBERED
        present = (row.get(uid) for row in here if not self._outlived_its_delete(row, memory))
        return Seen(
            slot,
            actual,
            claiming,
            consulted=frozenset(claims),
            memory=memory,
            present_uids=frozenset(each for each in present if isinstance(each, int)),
            suspected=suspect.suspected,
            listed=listed is not None,
        )

    def _outlived_its_delete(self, truth: Row, memory: Memory) -> bool:
        """Its user deleted it; only the clocks differ."""
        return any(
            abs(written - deleted) <= self.delete_clock_tolerance
            for deleted in memory.range_deletes
            for written in truth.written.values()
        )

    def _memory(self, slot: Slot, messageids: set[UUID]) -> Memory:
        entries = self.lineage.of_messages(list(messageids))
        since = self.lineage.watched_since()
        return merged(
            [
                memory_of(
                    slot,
                    each,
                    entries.get(each, []),
                    self.lineage.truth_deletes(each, slot.mailboxid),
                    self._projection_deletes(slot, entries.get(each, [])),
                    since,
                )
                for each in sorted(messageids)
            ]
        )

    def _projection_deletes(
        self, slot: Slot, entries: Iterable[Entry]
    ) -> dict[int, frozenset[Micros]]:
        """Of this row and of the message's others in its mailbox."""
        uids = {entry.uid for entry in entries if entry.mailboxid == slot.mailboxid} | {slot.uid}
        return {
            uid: self.lineage.projection_deletes(Slot(slot.mailboxid, uid)) for uid in sorted(uids)
        }
