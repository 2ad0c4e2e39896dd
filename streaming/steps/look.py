"""Steps 3 and 4, look and compare: keys to slots, both sides read in bulk, suspects out.

Runs on executors, for the keys of some mailboxes at a time, over ports. Nothing is judged here:
a suspect is only a slot where both sides differed at one look without serial reads.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from checkpoints.lineage import Lineage, complete_at
from reconcilers.compare import compare
from reconcilers.errors import Refused
from reconcilers.family import Family, Projection
from reconcilers.model import Kind, Micros, Row, Seen, Slot, Suspect, Wake
from streaming.steps.look_state import Sight, Target
from streaming.steps.record_lineage import Remembering


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
    """What a look found: suspects, keys to look at again, and how many slots were compared.

    ``changes`` are how many changes each mailbox had, no fewer; ``touched`` the UIDs they were of;
    ``later`` the slots of which an index could not be read.
    """

    suspects: tuple[Suspect, ...]
    again: tuple[Wake, ...]
    examined: int
    unresolved: int
    changes: Mapping[UUID, int]
    touched: Mapping[UUID, frozenset[int]]
    later: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """Looks at keys of one family: its truth once, for all of its projections."""

    family: Family
    tables: LookTables
    lineage: Lineage
    watched_since: Micros | None = None

    def at(self, wakes: Sequence[Wake], now: Micros) -> Looked:
        """Resolve, read, compare and remember. ``now`` is µs, taken before the first read.

        Raises `reconcilers.errors.Retryable`: the whole look is then done again.
        """
        remembering = Remembering(self.family, self.lineage, self.watched_since)
        remembering.deletes(wakes)
        sight = Sight()
        self._resolve_slots(wakes, sight)
        self._resolve_messages(wakes, sight)
        for index in self.family.projections[1:]:
            self._read_index(index, sight)
        remembering.partition_deletes(wakes, sight)
        remembering.rows(wakes, sight, now)
        return self._compared(wakes, sight)

    def _read_index(self, index: Projection, sight: Sight) -> None:
        """An index that refuses to be read holds up none of the others (promise 7)."""
        try:
            sight.indexes[index.name] = self.tables.projection_rows(index, sight.targets)
        except Refused:
            sight.unread.add(index.name)

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
        sight.rows |= self.tables.projection_rows(self.family.first, slots)
        sight.entries |= self.lineage.of_slots(slots)
        for slot in slots:
            target, row = sight.targets[slot], sight.rows.get(slot)
            target.messageids.update([entry.messageid for entry in sight.entries.get(slot, ())])
            named = self.family.first.message_of(row)
            if named is not None:
                target.messageids.add(named)

    def _resolve_messages(self, wakes: Iterable[Wake], sight: Sight) -> None:
        """Wakes that name a message and no UID: its slots come from truth, lineage, or a scan."""
        ranged = [wake for wake in wakes if wake.uid is None and wake.messageid is not None]
        named = {wake.messageid for wake in ranged if wake.messageid is not None}
        sight.remembered |= self.lineage.of_messages(list(named))
        self._read_truths(sight, named | _claimants(sight.targets.values()))
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
        elsewhere = sight.claims.keys() - sight.targets.keys() - sight.entries.keys()
        sight.entries |= self.lineage.of_slots(list(elsewhere))

    def _scan_mailboxes(
        self, ranged: Iterable[Wake], sight: Sight
    ) -> Mapping[UUID, Sequence[Slot]]:
        """Where nothing is remembered of a deleted message: one read of each such mailbox."""
        wanted: dict[UUID, set[UUID]] = defaultdict(set)
        for wake in ranged:
            messageid, mailboxid = wake.messageid, wake.mailboxid
            if messageid is None or mailboxid is None:
                continue
            if not self._knows_all(messageid, mailboxid, sight):
                wanted[mailboxid].add(messageid)
        found: dict[UUID, list[Slot]] = defaultdict(list)
        for mailboxid, messageids in wanted.items():
            for slot, messageid in self.tables.mailbox_slots(self.family.first, mailboxid):
                if messageid in messageids:
                    found[messageid].append(slot)
        return found

    def _knows_all(self, messageid: UUID, mailboxid: UUID, sight: Sight) -> bool:
        """Whether lineage holds all UIDs that the message has had there while we watch."""
        here = [each for each in sight.remembered.get(messageid, ()) if each.mailboxid == mailboxid]
        return bool(here) and complete_at(messageid, here, self.watched_since) is not None

    def _slots_of(
        self,
        messageid: UUID,
        mailboxid: UUID | None,
        sight: Sight,
        scanned: Mapping[UUID, Sequence[Slot]],
    ) -> set[Slot]:
        slots = {self._slot(row) for row in sight.truths.get(messageid, ())}
        remembered = sight.remembered.get(messageid, ())
        slots |= {Slot(entry.mailboxid, entry.uid) for entry in remembered}
        slots |= set(scanned.get(messageid, ()))
        return {slot for slot in slots if mailboxid in (None, slot.mailboxid)}

    def _slot(self, truth: Row) -> Slot:
        mailbox, number = self.family.slot
        mailboxid, uid = truth.get(mailbox), truth.get(number)
        assert isinstance(mailboxid, UUID)
        assert isinstance(uid, int)
        return Slot(mailboxid, uid)

    # --- step 4

    def _compared(self, wakes: Iterable[Wake], sight: Sight) -> Looked:
        suspects = []
        for target in sight.targets.values():
            truths = sight.claimed(target.slot, target.messageids)
            for projection in self.family.projections:
                if projection.name in sight.unread:
                    continue
                suspect = self._suspect(projection, target, sight, truths)
                if suspect is not None:
                    suspects.append(suspect)
        suspects += [sight.sounding(name) for name in sorted(sight.unread) if sight.targets]
        lost = list(self._unresolved(wakes, sight))
        return Looked(
            suspects=(*suspects, *(suspect for suspect in lost if isinstance(suspect, Suspect))),
            again=tuple(wake for wake in lost if isinstance(wake, Wake)),
            examined=len(sight.targets),
            unresolved=len(lost),
            changes=_changes(wakes, sight),
            touched=_touched(sight),
            later=tuple(sight.targets) if sight.unread else (),
        )

    def _suspect(
        self, projection: Projection, target: Target, sight: Sight, truths: tuple[Row, ...]
    ) -> Suspect | None:
        listed = sight.rows.get(target.slot)
        index = sight.indexes.get(projection.name, {})
        seen = Seen(
            slot=target.slot,
            actual=index.get(target.slot) if projection.is_index else listed,
            truths=truths,
            listed=listed is not None,
        )
        difference = compare(self.family, projection, seen)
        if difference is None and projection.name not in target.looked_again:
            return None
        return target.suspect(projection.name, difference.kind if difference else None)

    def _unresolved(self, wakes: Iterable[Wake], sight: Sight) -> Iterable[Suspect | Wake]:
        """Deleted projection rows whose message nobody remembers.

        The first time they are looked at again one delay later: on a fresh installation every
        expunge of older mail looks like this, and its truth delete may come out a window later.
        """
        for wake in wakes:
            if wake.deleted_at is None:
                continue
            if wake.mailboxid is None or wake.uid is None:
                if self._nowhere(wake, sight) and not wake.looked_again:
                    yield wake
                continue
            if wake.deleted_from != self.family.first.table:
                continue
            slot = Slot(wake.mailboxid, wake.uid)
            if sight.targets[slot].messageids or slot in sight.rows:
                continue
            if not wake.looked_again:
                yield wake
            elif not self.lineage.truth_deletes_in_mailbox(
                wake.mailboxid, wake.deleted_at - NEAR_BY, wake.deleted_at + NEAR_BY
            ):
                name, oldest = self.family.first.name, wake.oldest
                yield Suspect(slot, frozenset(), Kind.UNRESOLVED, name, oldest, looked_again=True)

    def _nowhere(self, wake: Wake, sight: Sight) -> bool:
        """Whether a whole message was deleted of which no row is remembered or left."""
        if wake.mailboxid is not None or wake.messageid is None:
            return False
        return not sight.remembered.get(wake.messageid) and not sight.truths.get(wake.messageid)


NEAR_BY: Micros = 60_000_000
"""How far (µs) a mail server's two deletes of one message may lie apart, retries included."""


def _changes(wakes: Iterable[Wake], sight: Sight) -> Mapping[UUID, int]:
    """By mailbox; a delete that names no UID counts once more than the UIDs it led to."""
    found: Counter[UUID] = Counter()
    for target in sight.targets.values():
        found[target.slot.mailboxid] += target.changes
    for wake in wakes:
        if wake.uid is None and wake.mailboxid is not None and not wake.looked_again:
            found[wake.mailboxid] += wake.changes
    return +found


def _touched(sight: Sight) -> Mapping[UUID, frozenset[int]]:
    found: dict[UUID, set[int]] = defaultdict(set)
    for target in sight.targets.values():
        if target.changes:
            found[target.slot.mailboxid].add(target.slot.uid)
    return {mailboxid: frozenset(uids) for mailboxid, uids in found.items()}


def _claimants(targets: Iterable[Target]) -> set[UUID]:
    return {messageid for target in targets for messageid in target.messageids}
