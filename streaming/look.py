"""Steps 3 and 4, look and compare: keys to slots, both sides read in bulk, suspects out.

Runs on executors, for the keys of some mailboxes at a time, over ports. Nothing is judged here:
a suspect is only a slot where both sides differed at one look without serial reads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from checkpoints.lineage import WHOLE_RANGE, Entry, Lineage, ProjectionDelete, TruthDelete
from reconcilers.compare import compare
from reconcilers.family import Family, Projection
from reconcilers.model import Kind, Micros, Row, Seen, Slot, Suspect, Wake
from streaming.sight import Sight, Target


class LookTables(Protocol):
    """What step 3 reads; `streaming.tables.Tables` is the real one."""

    def truth_rows(self, messageids: Iterable[UUID]) -> dict[UUID, tuple[Row, ...]]:
        """All truth rows of each message."""

    def projection_rows(self, projection: Projection, slots: Iterable[Slot]) -> dict[Slot, Row]:
        """The projection's rows at these slots."""

    def mailbox_slots(
        self, projection: Projection, mailboxid: UUID
    ) -> Iterable[tuple[Slot, UUID | None]]:
        """Every slot of a mailbox in the projection, with the message its row names."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look found: suspects, keys to look at again, and how many slots were compared."""

    suspects: tuple[Suspect, ...]
    again: tuple[Wake, ...]
    examined: int
    unresolved: int


@dataclass(frozen=True, slots=True)
class Look:
    """Looks at keys of one family; ``projection`` is the one whose rows lead back to the truth."""

    family: Family
    projection: Projection
    tables: LookTables
    lineage: Lineage
    watched_since: Micros | None = None

    def at(self, wakes: Sequence[Wake], now: Micros) -> Looked:
        """Resolve, read, compare and remember. ``now`` is µs, taken before the first read.

        Raises `reconcilers.errors.Retryable`: the whole look is then done again.
        """
        self._note_deletes(wakes)
        sight = Sight()
        self._resolve_slots(wakes, sight)
        self._resolve_messages(wakes, sight)
        self._remember(wakes, sight, now)
        return self._compared(wakes, sight)

    # --- what deletes tell

    def _note_deletes(self, wakes: Iterable[Wake]) -> None:
        seen: list[TruthDelete | ProjectionDelete] = []
        for wake in wakes:
            at, mailboxid, uid = wake.deleted_at, wake.mailboxid, wake.uid
            if at is None or mailboxid is None or wake.looked_again:
                continue
            if wake.deleted_from == self.family.truth and wake.messageid is not None:
                named = WHOLE_RANGE if uid is None else uid
                seen.append(TruthDelete(wake.messageid, mailboxid, named, at))
            elif wake.deleted_from == self.projection.table and uid is not None:
                seen.append(ProjectionDelete(Slot(mailboxid, uid), at))
        if seen:
            self.lineage.remember_deletes(seen)

    # --- keys to slots

    def _resolve_slots(self, wakes: Iterable[Wake], sight: Sight) -> None:
        """Wakes that name a slot, or a whole mailbox (through lineage)."""
        for wake in wakes:
            if wake.mailboxid is None:
                continue
            if wake.uid is not None:
                sight.target(Slot(wake.mailboxid, wake.uid)).learn(wake, wake.messageid)
            elif wake.messageid is None:
                for slot, messageid in self.lineage.of_mailbox(wake.mailboxid):
                    sight.target(slot).learn(wake, messageid)
        self._read_rows(sight, list(sight.targets))

    def _read_rows(self, sight: Sight, slots: Sequence[Slot]) -> None:
        """The projection's side, and through it or lineage the messages that may claim it."""
        sight.rows |= self.tables.projection_rows(self.projection, slots)
        nameless = []
        for slot in slots:
            target, row = sight.targets[slot], sight.rows.get(slot)
            named = row.get(self.projection.identity) if row is not None else None
            if isinstance(named, UUID):
                target.messageids.add(named)
            if not target.messageids:
                nameless.append(slot)
        for slot, messageids in self.lineage.of_slots(nameless).items():
            sight.targets[slot].messageids |= messageids

    def _resolve_messages(self, wakes: Iterable[Wake], sight: Sight) -> None:
        """Wakes that name a message and no UID: its slots come from truth, lineage, or a scan."""
        ranged = [wake for wake in wakes if wake.uid is None and wake.messageid is not None]
        self._read_truths(sight, {wake.messageid for wake in ranged if wake.messageid is not None})
        self._read_truths(sight, _claimants(sight.targets.values()))
        scanned = self._scan_mailboxes(ranged, sight)
        new: dict[Slot, None] = {}
        for wake in ranged:
            assert wake.messageid is not None
            for slot in self._slots_of(wake.messageid, wake.mailboxid, sight, scanned):
                if slot not in sight.targets:
                    new[slot] = None
                sight.target(slot).learn(wake, wake.messageid)
        self._read_rows(sight, list(new))
        self._read_truths(sight, _claimants(sight.targets.values()))

    def _read_truths(self, sight: Sight, messageids: set[UUID]) -> None:
        unread = messageids - sight.read
        if not unread:
            return
        sight.read |= unread
        truths = self.tables.truth_rows(unread)
        sight.truths |= truths
        for messageid, rows in truths.items():
            for row in rows:
                sight.claims.setdefault(self._slot(row), []).append((messageid, row))
        sight.entries |= self.lineage.of_messages(list(unread))

    def _scan_mailboxes(
        self, ranged: Iterable[Wake], sight: Sight
    ) -> Mapping[UUID, Sequence[Slot]]:
        """Where nothing is remembered of a deleted message: one read of each such mailbox."""
        wanted: dict[UUID, set[UUID]] = defaultdict(set)
        for wake in ranged:
            if wake.messageid is not None and wake.mailboxid is not None:
                entries = sight.entries.get(wake.messageid, [])
                if not any(entry.mailboxid == wake.mailboxid for entry in entries):
                    wanted[wake.mailboxid].add(wake.messageid)
        found: dict[UUID, list[Slot]] = defaultdict(list)
        for mailboxid, messageids in wanted.items():
            for slot, messageid in self.tables.mailbox_slots(self.projection, mailboxid):
                if messageid in messageids:
                    found[messageid].append(slot)
        return found

    def _slots_of(
        self,
        messageid: UUID,
        mailboxid: UUID | None,
        sight: Sight,
        scanned: Mapping[UUID, Sequence[Slot]],
    ) -> set[Slot]:
        slots = {self._slot(row) for row in sight.truths.get(messageid, ())}
        slots |= {Slot(entry.mailboxid, entry.uid) for entry in sight.entries.get(messageid, ())}
        slots |= set(scanned.get(messageid, ()))
        return {slot for slot in slots if mailboxid in (None, slot.mailboxid)}

    def _slot(self, truth: Row) -> Slot:
        mailbox, number = self.family.slot
        mailboxid, uid = truth.get(mailbox), truth.get(number)
        assert isinstance(mailboxid, UUID)
        assert isinstance(uid, int)
        return Slot(mailboxid, uid)

    # --- remember

    def _remember(self, wakes: Iterable[Wake], sight: Sight, now: Micros) -> None:
        """Write to lineage only what it does not hold yet; let go of what is gone on both sides."""
        entries = (entry for known in sight.entries.values() for entry in known)
        known = {(entry.messageid, Slot(entry.mailboxid, entry.uid)): entry for entry in entries}
        new: dict[tuple[UUID, Slot], Entry] = {}
        for place, entry in self._rows_seen(wakes, sight, now).items():
            before = known.get(place)
            if before is None or self._tells_more(entry, before):
                new[place] = entry
            elif before.expiring and entry.recorded_at is not None:
                new[place] = before
        if new:
            self.lineage.remember(new.values())
        empty = sight.targets.keys() - sight.rows.keys()
        gone = [
            entry
            for (messageid, slot), entry in known.items()
            if slot in empty and not entry.expiring and not sight.claimed(slot, (messageid,))
        ]
        if gone:
            self.lineage.expire(gone)

    def _tells_more(self, entry: Entry, before: Entry) -> bool:
        """Whether it adds to what is remembered; the earliest read since watching began is kept."""
        if entry.in_truth and not before.in_truth:
            return True
        known_at = before.recorded_at
        outdated = known_at is None or known_at < (self.watched_since or 0)
        return entry.recorded_at is not None and outdated

    def _rows_seen(
        self, wakes: Iterable[Wake], sight: Sight, now: Micros
    ) -> dict[tuple[UUID, Slot], Entry]:
        """Each row once: as read from the truth, else as told by its event, else as projected."""
        seen: dict[tuple[UUID, Slot], Entry] = {}
        for slot, row in sight.rows.items():
            named = row.get(self.projection.identity)
            if isinstance(named, UUID):
                seen[named, slot] = Entry(named, slot.mailboxid, slot.uid, in_truth=False)
        for wake in wakes:
            if wake.from_truth and wake.messageid and wake.mailboxid and wake.uid is not None:
                slot = Slot(wake.mailboxid, wake.uid)
                seen[wake.messageid, slot] = Entry(
                    wake.messageid, wake.mailboxid, wake.uid, in_truth=True
                )
        for slot, claims in sight.claims.items():
            for messageid, _row in claims:
                seen[messageid, slot] = Entry(
                    messageid, slot.mailboxid, slot.uid, in_truth=True, recorded_at=now
                )
        return seen

    # --- step 4

    def _compared(self, wakes: Iterable[Wake], sight: Sight) -> Looked:
        suspects = []
        for target in sight.targets.values():
            suspect = self._suspect(target, sight)
            if suspect is not None:
                suspects.append(suspect)
        lost = list(self._unresolved(wakes, sight))
        return Looked(
            suspects=(*suspects, *(suspect for suspect in lost if isinstance(suspect, Suspect))),
            again=tuple(wake for wake in lost if isinstance(wake, Wake)),
            examined=len(sight.targets),
            unresolved=len(lost),
        )

    def _suspect(self, target: Target, sight: Sight) -> Suspect | None:
        seen = Seen(
            slot=target.slot,
            actual=sight.rows.get(target.slot),
            truths=sight.claimed(target.slot, target.messageids),
            consulted=frozenset(target.messageids),
        )
        difference = compare(self.family, self.projection, seen)
        if difference is None and not target.looked_again:
            return None
        kind = difference.kind if difference is not None else None
        return Suspect(
            target.slot,
            frozenset(target.messageids),
            kind,
            target.oldest,
            target.looked_again,
            target.suspected,
        )

    def _unresolved(self, wakes: Iterable[Wake], sight: Sight) -> Iterable[Suspect | Wake]:
        """Deleted projection rows whose message nobody remembers.

        The first time they are looked at again one delay later: on a fresh installation every
        expunge of older mail looks like this, and its truth delete may come out a window later.
        """
        for wake in wakes:
            if wake.mailboxid is None or wake.uid is None or wake.deleted_at is None:
                continue
            slot = Slot(wake.mailboxid, wake.uid)
            if sight.targets[slot].messageids or slot in sight.rows:
                continue
            if not wake.looked_again:
                yield wake
            elif not self.lineage.truth_deletes_in_mailbox(
                wake.mailboxid, wake.deleted_at - NEAR_BY, wake.deleted_at + NEAR_BY
            ):
                yield Suspect(slot, frozenset(), Kind.UNRESOLVED, wake.oldest, looked_again=True)


NEAR_BY: Micros = 60_000_000
"""How far (µs) a mail server's two deletes of one message may lie apart, retries included."""


def _claimants(targets: Iterable[Target]) -> set[UUID]:
    return {messageid for target in targets for messageid in target.messageids}
