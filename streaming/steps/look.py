"""Steps 3 and 4, look and compare: keys to slots, both sides read in bulk, suspects out.

Runs on executors, for the keys of some mailboxes at a time, over ports. Nothing is judged here:
a suspect is only a slot where both sides differed at one look without serial reads.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from checkpoints.lineage import Lineage
from reconcilers.compare import compare
from reconcilers.errors import Refused
from reconcilers.family import Family, Projection
from reconcilers.memory import complete_at
from reconcilers.model import Kind, Micros, Row, Slot, Suspect, Wake
from reconcilers.seen import Seen
from streaming.steps.look_state import LookState, Target
from streaming.steps.ports import LookTables
from streaming.steps.record_lineage import LineageRecorder


@dataclass(frozen=True, slots=True)
class LookResult:
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

    def at(self, wakes: Sequence[Wake], now: Micros) -> LookResult:
        """Resolve, read, compare and remember. ``now`` is µs, taken before the first read.

        Raises `reconcilers.errors.Retryable`: the whole look is then done again.
        """
        remembering = LineageRecorder(self.family, self.lineage, self.watched_since)
        remembering.deletes(wakes)
        state = LookState()
        self._resolve_slots(wakes, state)
        self._resolve_messages(wakes, state)
        for index in self.family.projections[1:]:
            self._read_index(index, state)
        remembering.partition_deletes(wakes, state)
        remembering.rows(wakes, state, now)
        return self._compared(wakes, state)

    def _read_index(self, index: Projection, state: LookState) -> None:
        """An index that refuses to be read holds up none of the others (promise 7)."""
        try:
            state.indexes[index.name] = self.tables.projection_rows(index, state.targets)
        except Refused:
            state.unread.add(index.name)

    # --- keys to slots

    def _resolve_slots(self, wakes: Iterable[Wake], state: LookState) -> None:
        """Wakes that name a slot, or a whole mailbox (through lineage)."""
        for wake in wakes:
            if wake.mailboxid is None:
                continue
            if wake.uid is not None:
                state.target(Slot(wake.mailboxid, wake.uid)).add(wake, wake.messageid)
            elif wake.messageid is None:
                for slot, messageid in self.lineage.of_mailbox(wake.mailboxid):
                    state.target(slot).add(wake, messageid)
        self._read_rows(state, list(state.targets))

    def _read_rows(self, state: LookState, slots: Sequence[Slot]) -> None:
        """The projection's side, and through it or lineage the messages that may claim it."""
        state.rows |= self.tables.projection_rows(self.family.listing, slots)
        state.entries |= self.lineage.of_slots(slots)
        for slot in slots:
            target, row = state.targets[slot], state.rows.get(slot)
            target.messageids.update([entry.messageid for entry in state.entries.get(slot, ())])
            named = self.family.listing.message_of(row)
            if named is not None:
                target.messageids.add(named)

    def _resolve_messages(self, wakes: Iterable[Wake], state: LookState) -> None:
        """Wakes that name a message and no UID: its slots come from truth, lineage, or a scan."""
        ranged = [wake for wake in wakes if wake.uid is None and wake.messageid is not None]
        named = {wake.messageid for wake in ranged if wake.messageid is not None}
        state.remembered |= self.lineage.of_messages(list(named))
        self._read_truths(state, named | _claimants(state.targets.values()))
        scanned = self._scan_mailboxes(ranged, state)
        new: dict[Slot, None] = {}
        for wake in ranged:
            assert wake.messageid is not None
            for slot in self._slots_of(wake.messageid, wake.mailboxid, state, scanned):
                if slot not in state.targets:
                    new[slot] = None
                state.target(slot).add(wake, wake.messageid)
        self._read_rows(state, list(new))
        self._read_truths(state, _claimants(state.targets.values()))

    def _read_truths(self, state: LookState, messageids: set[UUID]) -> None:
        unread = messageids - state.truths.keys()
        if not unread:
            return
        truths = self.tables.truth_rows(unread)
        state.truths |= dict.fromkeys(unread, ()) | truths
        for messageid, rows in truths.items():
            for row in rows:
                state.claims.setdefault(self._slot(row), []).append((messageid, row))
        elsewhere = state.claims.keys() - state.targets.keys() - state.entries.keys()
        state.entries |= self.lineage.of_slots(list(elsewhere))

    def _scan_mailboxes(
        self, ranged: Iterable[Wake], state: LookState
    ) -> Mapping[UUID, Sequence[Slot]]:
        """Where nothing is remembered of a deleted message: one read of each such mailbox."""
        wanted: dict[UUID, set[UUID]] = defaultdict(set)
        for wake in ranged:
            messageid, mailboxid = wake.messageid, wake.mailboxid
            if messageid is None or mailboxid is None:
                continue
            if not self._knows_all(messageid, mailboxid, state):
                wanted[mailboxid].add(messageid)
        found: dict[UUID, list[Slot]] = defaultdict(list)
        for mailboxid, messageids in wanted.items():
            for slot, messageid in self.tables.mailbox_slots(self.family.listing, mailboxid):
                if messageid in messageids:
                    found[messageid].append(slot)
        return found

    def _knows_all(self, messageid: UUID, mailboxid: UUID, state: LookState) -> bool:
        """Whether lineage holds all UIDs that the message has had there while we watch."""
        here = [each for each in state.remembered.get(messageid, ()) if each.mailboxid == mailboxid]
        return bool(here) and complete_at(messageid, here, self.watched_since) is not None

    def _slots_of(
        self,
        messageid: UUID,
        mailboxid: UUID | None,
        state: LookState,
        scanned: Mapping[UUID, Sequence[Slot]],
    ) -> set[Slot]:
        slots = {self._slot(row) for row in state.truths.get(messageid, ())}
        remembered = state.remembered.get(messageid, ())
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

    def _compared(self, wakes: Iterable[Wake], state: LookState) -> LookResult:
        suspects = []
        for target in state.targets.values():
            truths = state.claimed(target.slot, target.messageids)
            for projection in self.family.projections:
                if projection.name in state.unread:
                    continue
                suspect = self._suspect(projection, target, state, truths)
                if suspect is not None:
                    suspects.append(suspect)
        suspects += [state.probe(name) for name in sorted(state.unread) if state.targets]
        lost = list(self._unresolved(wakes, state))
        return LookResult(
            suspects=(*suspects, *(suspect for suspect in lost if isinstance(suspect, Suspect))),
            again=tuple(wake for wake in lost if isinstance(wake, Wake)),
            examined=len(state.targets),
            unresolved=len(lost),
            changes=_changes(wakes, state),
            touched=_touched(state),
            later=tuple(state.targets) if state.unread else (),
        )

    def _suspect(
        self, projection: Projection, target: Target, state: LookState, truths: tuple[Row, ...]
    ) -> Suspect | None:
        listed = state.rows.get(target.slot)
        index = state.indexes.get(projection.name, {})
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

    def _unresolved(self, wakes: Iterable[Wake], state: LookState) -> Iterable[Suspect | Wake]:
        """Deleted projection rows whose message nobody remembers.

        The first time they are looked at again one delay later: on a fresh installation every
        expunge of older mail looks like this, and its truth delete may come out a window later.
        """
        for wake in wakes:
            if wake.deleted_at is None:
                continue
            if wake.mailboxid is None or wake.uid is None:
                if self._nowhere(wake, state) and not wake.looked_again:
                    yield wake
                continue
            if wake.deleted_from != self.family.listing.table:
                continue
            slot = Slot(wake.mailboxid, wake.uid)
            if state.targets[slot].messageids or slot in state.rows:
                continue
            if not wake.looked_again:
                yield wake
            elif not self.lineage.truth_deletes_in_mailbox(
                wake.mailboxid, wake.deleted_at - NEAR_BY, wake.deleted_at + NEAR_BY
            ):
                name, oldest = self.family.listing.name, wake.oldest
                yield Suspect(slot, frozenset(), Kind.UNRESOLVED, name, oldest, looked_again=True)

    def _nowhere(self, wake: Wake, state: LookState) -> bool:
        """Whether a whole message was deleted of which no row is remembered or left."""
        if wake.mailboxid is not None or wake.messageid is None:
            return False
        return not state.remembered.get(wake.messageid) and not state.truths.get(wake.messageid)


NEAR_BY: Micros = 60_000_000
"""How far (µs) a mail server's two deletes of one message may lie apart, retries included."""


def _changes(wakes: Iterable[Wake], state: LookState) -> Mapping[UUID, int]:
    """By mailbox; a delete that names no UID counts once more than the UIDs it led to."""
    found: Counter[UUID] = Counter()
    for target in state.targets.values():
        found[target.slot.mailboxid] += target.changes
    for wake in wakes:
        if wake.uid is None and wake.mailboxid is not None and not wake.looked_again:
            found[wake.mailboxid] += wake.changes
    return +found


def _touched(state: LookState) -> Mapping[UUID, frozenset[int]]:
    found: dict[UUID, set[int]] = defaultdict(set)
    for target in state.targets.values():
        if target.changes:
            found[target.slot.mailboxid].add(target.slot.uid)
    return {mailboxid: frozenset(uids) for mailboxid, uids in found.items()}


def _claimants(targets: Iterable[Target]) -> set[UUID]:
    return {messageid for target in targets for messageid in target.messageids}
