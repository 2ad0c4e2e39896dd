"""The looks at one share of a batch: in slices, and around what cannot be read.

A key that cannot be read becomes a suspect with the reason, gets a finding of its own, and holds up
no other key. While that finding is open, the key is only read alone, at its own next look. Its
changes are counted all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from reconcilers.rows.compare import not_collected
from reconcilers.rows.halves import in_halves
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import NO_PROJECTION, KeyValue, Micros, Slot, Suspect, Wake, look_again
from streaming.steps.look import Look, LookResult
from streaming.steps.ports import SourcedSlot
from streaming.steps.record_lineage import LineageRecorder

KEYS_A_LOOK = 5_000
"""Keys of one look, at about 5 KB each; a wake may lead to a whole mailbox."""


@dataclass(frozen=True, slots=True)
class Looks:
    """All looks that some wakes need."""

    look: Look

    def at(self, wakes: Iterable[Wake], now: Micros) -> Iterator[LookResult]:
        """Look at each key once, `KEYS_A_LOOK` at a time. ``now`` is µs, before the first read.

        Raises `reconcilers.words.errors.Retryable` or `Refused` if more than single keys fail.
        """
        together, apart = list[Wake](), self.look.apart
        for wake in wakes:
            if not apart or wake.slot not in apart:
                together.append(wake)
            elif wake.looked_again:
                yield from self._in_slices([wake], now)
            elif not self.look.family.is_whole_group(wake.slot):
                yield self._left(wake)
        yield from self._in_slices(together, now)

    def _in_slices(self, wakes: Iterable[Wake], now: Micros) -> Iterator[LookResult]:
        some: list[Wake] = []
        missed: list[LookResult] = []
        for wake in wakes:
            for each in self._led_to(wake, missed):
                some.append(each)
                if len(some) >= KEYS_A_LOOK:
                    yield from self._read(some, now)
                    some = []
        yield from self._read(some, now)
        yield from missed

    def _read(self, wakes: Sequence[Wake], now: Micros) -> Iterator[LookResult]:
        read = in_halves(wakes, lambda some: self.look.at(some, now), self._read_nothing)
        yield from read.answers
        yield from (self._unread(wake, why) for wake, why in read.unreadable)

    def _read_nothing(self) -> None:
        family, tables = self.look.family, self.look.tables
        tables.truth_rows([family.truth.source.of_no_row])
        tables.projection_rows(family.listing, [family.nowhere])
        self.look.lineage.of_slots([family.nowhere])
        self.look.lineage.of_sources([family.truth.source.of_no_row])

    # --- whole groups

    def _led_to(self, wake: Wake, missed: list[LookResult]) -> Iterator[Wake]:
        """The wake itself, and before it the keys of its group if it stands for a whole group.

        With `NO_PROJECTION` a whole group is looked at for its collecting row only. An event of
        such a row leads to nothing here: that look is due later. What cannot be read is added to
        ``missed``: as a whole, if that is the list that each key of the group is compared with.
        """
        slot, family = wake.slot, self.look.family
        if slot is None and wake.source is None and wake.group is not None:
            yield from self._remembered_there(wake, wake.group)
        elif slot is not None and family.is_whole_group(slot):
            if not wake.looked_again:
                return
            only_collecting = wake.projection == NO_PROJECTION
            try:
                self.look.tables.truth_rows(family.named_by(slot))
                for each, named in (
                    self._not_collected(slot, missed)
                    if only_collecting
                    else self._listed(slot.group)
                ):
                    yield look_again(each, NO_PROJECTION, named)
            except ReadFailed as error:
                missed.append(self._unread(wake, str(error)))
                return
            if only_collecting:
                return
        yield wake

    def _listed(self, group: KeyValue) -> Iterable[SourcedSlot]:
        return self.look.tables.slots_of_group(self.look.family.listing, group)

    def _not_collected(self, whole: Slot, missed: list[LookResult]) -> Iterator[SourcedSlot]:
        """The slots of a group whose elements in the listing a collecting row of it lacks.

        If that row cannot be read, one slot is looked at, which reports it, and the ``whole`` group
        is due again later.
        """
        tables, family = self.look.tables, self.look.family
        collecting = [each for each in family.projections if each.collects is not None]
        listed = iter(self._listed(whole.group))
        while collecting and (some := dict(islice(listed, KEYS_A_LOOK))):
            rows = tables.projection_rows(family.listing, some)
            for index in tuple(collecting):
                try:
                    there = tables.projection_rows(index, rows)
                except (Refused, ReadFailed):  # it does not hold up the others
                    collecting.remove(index)
                    missed.append(LookResult((), (), 0, 0, {}, (), later=(whole,)))
                    yield from islice(some.items(), 1)
                    continue
                for slot, row in rows.items():
                    if not_collected(str(index.collects), [row], there.get(slot)):
                        yield slot, some[slot]

    def _remembered_there(self, wake: Wake, group: KeyValue) -> Iterator[Wake]:
        """The keys of the group that the wake covers, without its delete: it may mean another."""
        bare = replace(wake, deleted_from=None, deleted_at=None, from_truth=False)
        for slot, source in self.look.lineage.of_group(group):
            if wake.covers(slot):
                yield replace(bare, key=slot.key, source=source)

    # --- what is not read

    def _left(self, wake: Wake) -> LookResult:
        """The result for a key that is known to be unreadable; its deletes go to lineage."""
        look = self.look
        LineageRecorder(look.family, look.lineage, look.watched_since).deletes([wake])
        return self._counted(wake, ())

    def _unread(self, wake: Wake, why: str) -> LookResult:
        """The result for a wake that cannot be read; the suspect is at what is known of its key.

        The source stands for a key of one part that is not known: no row has it there.
        """
        known = wake.key if wake.key != (None,) else (wake.source,)
        place = self.look.family.known_part(*known)
        sources = frozenset[KeyValue]() if wake.source is None else frozenset({wake.source})
        listing = self.look.family.listing.name
        suspect = Suspect(place, sources, None, listing, wake.oldest, unreadable=why)
        return self._counted(wake, (suspect,))

    def _counted(self, wake: Wake, suspects: tuple[Suspect, ...]) -> LookResult:
        """A result with the wake's changes, and the slots that are known to have changed."""
        slots = [wake.slot] if wake.slot is not None else list(self._remembered(wake))
        changes: Counter[KeyValue] = Counter()
        if wake.looked_again:
            slots = []
        else:
            changes.update({} if wake.whole or wake.group is None else {wake.group: wake.changes})
        for slot in slots:
            changes[slot.group] += wake.changes
        return LookResult(suspects, (), len(suspects), 0, changes, tuple(slots))

    def _remembered(self, wake: Wake) -> Iterator[Slot]:
        if wake.source is not None:
            for entry in self.look.lineage.of_sources([wake.source]).get(wake.source, ()):
                if wake.covers(entry.slot):
                    yield entry.slot
