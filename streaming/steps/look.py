"""Steps 3 and 4, look and compare: keys to slots, both sides read in bulk, suspects out.

Runs on executors over ports, for the keys of some mailboxes. Nothing is judged here: a suspect is
only a slot whose sides differed at one look without serial reads.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from checkpoints.lineage import Lineage, SourceInGroup
from reconcilers.declared.family import Family, Projection
from reconcilers.rows.compare import compare
from reconcilers.rows.memory import Watching, complete_at
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import SECOND, KeyValue, Kind, Micros, Row, Slot, Suspect, Wake
from streaming.steps.look_state import LookState, Target
from streaming.steps.ports import LookTables
from streaming.steps.record_lineage import LineageRecorder

Unscanned = Mapping[KeyValue, str]
"""The groups that could not be read as a whole, each with the reason."""


@dataclass(frozen=True, slots=True)
class LookResult:
    """What a look found: suspects, keys to look at again, and how many slots were compared.

    ``changes`` counts the changes of each group, never too few; ``touched`` are the changed slots.
    ``later`` are slots of which an index could not be read.
    """

    suspects: tuple[Suspect, ...]
    again: tuple[Wake, ...]
    examined: int
    unresolved: int
    changes: Mapping[KeyValue, int]
    touched: tuple[Slot, ...]
    later: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """Looks at keys of one family; reads the truth once for all of its projections.

    ``watched_since`` and ``listed_at`` are believed times (µs); ``apart`` are unreadable slots.
    """

    family: Family
    tables: LookTables
    lineage: Lineage
    watched_since: Micros | None = None
    apart: frozenset[Slot] = frozenset()
    listed_at: Micros | None = None

    def at(self, wakes: Sequence[Wake], now: Micros) -> LookResult:
        """Resolve, read, compare, and record lineage. ``now`` is µs, taken before the first read.

        A wake that names only a group finds nothing here (see `streaming.steps.looks`). Raises
        `reconcilers.words.errors.Retryable`: the whole look is then repeated.
        """
        remembering = LineageRecorder(self.family, self.lineage, self.watched_since)
        remembering.deletes(wakes)
        state = LookState()
        self._resolve_slots(wakes, state)
        unscanned = self._resolve_sources(wakes, state)
        for index in self.family.projections[1:]:
            self._read_index(index, state)
        remembering.implied_deletes(wakes, state)
        remembering.rows(wakes, state, now)
        looked = self._compared(wakes, state)
        return replace(looked, suspects=(*looked.suspects, *self._unscanned(unscanned)))

    def _read_index(self, index: Projection, state: LookState) -> None:
        """Read an index. One that refuses does not hold up the others (promise 7)."""
        try:
            state.indexes[index.name] = self.tables.projection_rows(index, state.targets)
        except Refused:
            state.unread.add(index.name)
        except ReadFailed:
            if self._is_read(index):
                raise  # only some rows fail: `streaming.steps.looks` finds them
            state.unread.add(index.name)

    def _is_read(self, index: Projection) -> bool:
        """Whether the server reads the index at all; asked with a key that no row has."""
        try:
            self.tables.projection_rows(index, [self.family.nowhere])
        except ReadFailed:
            return False
        return True

    def _resolve_slots(self, wakes: Iterable[Wake], state: LookState) -> None:
        """Add the slots that wakes name."""
        for wake in wakes:
            slot = wake.slot
            if slot is not None:
                state.target(slot).add(wake, wake.source)
        self._read_rows(state, list(state.targets))

    def _read_rows(self, state: LookState, slots: Sequence[Slot]) -> None:
        """Read the listing and lineage at these slots; both name sources that may claim them."""
        state.rows |= self.tables.projection_rows(self.family.listing, slots)
        state.entries |= self.lineage.of_slots(slots)
        for slot in slots:
            target, row = state.targets[slot], state.rows.get(slot)
            entries = [entry.source for entry in state.entries.get(slot, ())]
            target.sources.update(entries, self.family.named_by(slot))
            named = self.family.listing.source_of(row)
            if named is not None:
                target.sources.add(named)

    def _resolve_sources(self, wakes: Iterable[Wake], state: LookState) -> Unscanned:
        """Add the slots of wakes that name only a source, from truth, lineage or a scan."""
        ranged = [
            (wake, wake.source) for wake in wakes if wake.source is not None and not wake.whole
        ]
        named = {source for _wake, source in ranged}
        state.remembered |= self.lineage.of_sources(list(named))
        self._read_truths(state, named | _claimants(state.targets.values()))
        scanned, unscanned = self._scan_groups(ranged, state)
        new: dict[Slot, None] = {}
        for wake, source in ranged:
            for slot in self._slots_of(wake, source, state, scanned):
                if slot not in state.targets:
                    new[slot] = None
                state.target(slot).add(wake, source)
        self._read_rows(state, list(new))
        self._read_truths(state, _claimants(state.targets.values()))
        return unscanned

    def _read_truths(self, state: LookState, sources: set[KeyValue]) -> None:
        unread = sources - state.truths.keys()
        if not unread:
            return
        truths = self.tables.truth_rows(unread)
        state.truths |= dict.fromkeys(unread, ()) | truths
        slot_of = self.family.truth.slot_of
        for source, rows in truths.items():
            for row in rows:
                state.claims.setdefault(slot_of(row), []).append((source, row))
        elsewhere = state.claims.keys() - state.targets.keys() - state.entries.keys()
        state.entries |= self.lineage.of_slots(list(elsewhere))

    def _scan_groups(
        self, ranged: Sequence[tuple[Wake, KeyValue]], state: LookState
    ) -> tuple[Mapping[KeyValue, Sequence[Slot]], Unscanned]:
        """Read each group in which lineage does not hold all slots of a deleted source.

        Groups that cannot be read are returned with the reason; their other slots are looked at.
        """
        if not ranged:
            return {}, {}
        wanted: dict[KeyValue, set[KeyValue]] = defaultdict(set)
        told = {
            (source, slot.group) for slot, each in state.targets.items() for source in each.sources
        }
        for wake, source in ranged:
            if wake.group is not None and not self._knows_all(source, wake.group, state, told):
                wanted[wake.group].add(source)
        found: dict[KeyValue, list[Slot]] = defaultdict(list)
        unscanned: dict[KeyValue, str] = {}
        for group, sources in wanted.items():
            if self.family.whole_group(group) in self.apart:
                continue
            try:
                for slot, named in self.tables.slots_of_group(self.family.listing, group):
                    if named is not None and named in sources:
                        found[named].append(slot)
            except ReadFailed as failed:
                unscanned[group] = str(failed)
        return found, unscanned

    def _knows_all(
        self, source: KeyValue, group: KeyValue, state: LookState, told: Collection[SourceInGroup]
    ) -> bool:
        """Whether all slots are known that the source has had in the group while we watch.

        Lineage has them if it holds the whole listing; else lineage or this look (``told``) must.
        """
        if self.listed_at is not None:
            return True
        here = [each for each in state.remembered.get(source, ()) if each.slot.group == group]
        heard_of = bool(here) or (source, group) in told
        watching = None if self.watched_since is None else Watching(self.watched_since)
        return heard_of and complete_at(source, here, watching) is not None

    def _slots_of(
        self,
        wake: Wake,
        source: KeyValue,
        state: LookState,
        scanned: Mapping[KeyValue, Sequence[Slot]],
    ) -> set[Slot]:
        slots = {self.family.truth.slot_of(row) for row in state.truths.get(source, ())}
        slots |= {entry.slot for entry in state.remembered.get(source, ())}
        slots |= set(scanned.get(source, ()))
        return {slot for slot in slots if wake.covers(slot)}

    # --- step 4

    def _compared(self, wakes: Iterable[Wake], state: LookState) -> LookResult:
        suspects = []
        for target in state.targets.values():
            truths = state.claimed(target.slot, target.sources)
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
            touched=tuple(each.slot for each in state.targets.values() if each.touched),
            later=tuple(state.targets) if state.unread else (),
        )

    def _unscanned(self, unscanned: Unscanned) -> Iterable[Suspect]:
        for group, why in unscanned.items():
            place, listing = self.family.whole_group(group), self.family.listing.name
            yield Suspect(place, frozenset(), None, listing, unreadable=why)

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
        return target.suspect(projection.name, difference)

    def _unresolved(self, wakes: Iterable[Wake], state: LookState) -> Iterable[Suspect | Wake]:
        """Deleted listing rows of which neither the tables nor lineage name the source any more.

        The first time, their key is looked at again one delay later. After an installation every
        expunge of older mail looks like this, and its truth delete may be released a window later.
        """
        for wake in wakes if self.family.remembered else ():  # else no later look finds more
            if wake.deleted_at is None:
                continue
            slot = wake.slot
            if slot is None:
                if self._nowhere(wake, state) and not wake.looked_again:
                    yield wake
                continue
            if wake.deleted_from != self.family.listing.table:
                continue
            if state.targets[slot].sources or slot in state.rows:
                continue
            if not wake.looked_again:
                yield wake
            elif not self.lineage.truth_deletes_in_group(slot.group, *_near(wake.deleted_at)):
                name, oldest = self.family.listing.name, wake.oldest
                yield Suspect(slot, frozenset(), Kind.UNRESOLVED, name, oldest, looked_again=True)

    def _nowhere(self, wake: Wake, state: LookState) -> bool:
        """Whether a whole source was deleted that has no row in lineage or in the truth."""
        if wake.group is not None or wake.source is None:
            return False
        return not state.remembered.get(wake.source) and not state.truths.get(wake.source)


NEAR_BY: Micros = 60 * SECOND
"""How far apart (µs) a mail server's two deletes of one message may lie, retries included."""


def _near(at: Micros) -> tuple[Micros, Micros]:
    """The bounds of `NEAR_BY` around a write time, within the 64 bits of a write time."""
    return max(at - NEAR_BY, -(2**63)), min(at + NEAR_BY, 2**63 - 1)


def _changes(wakes: Iterable[Wake], state: LookState) -> Mapping[KeyValue, int]:
    """Changes by group. A delete that names no slot counts in addition to the slots it led to."""
    found: Counter[KeyValue] = Counter()
    for target in state.targets.values():
        found[target.slot.group] += target.changes
    for wake in wakes:
        if not wake.looked_again and wake.group is not None and not wake.whole:
            found[wake.group] += wake.changes
    return +found


def _claimants(targets: Iterable[Target]) -> set[KeyValue]:
    return {source for target in targets for source in target.sources}
