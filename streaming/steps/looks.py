"""The looks at one share of a batch: in slices, and around what cannot be read.

A key that cannot be read becomes a suspect with the reason, for a finding of its own, and holds up
none of the others. While that finding is open its key is not read with others, only for a look of
its own, which comes by itself. Its changes count all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reconcilers.rows.halves import in_halves
from reconcilers.words.errors import ReadFailed
from reconcilers.words.model import NO_PROJECTION, KeyValue, Micros, Slot, Suspect, Wake, look_again
from streaming.steps.look import Look, LookResult
from streaming.steps.record_lineage import LineageRecorder

KEYS_A_LOOK = 5_000
"""At some 5 KB each; a wake may lead to a whole mailbox."""


@dataclass(frozen=True, slots=True)
class Looks:
    """All looks that some wakes need."""

    look: Look

    def at(self, wakes: Iterable[Wake], now: Micros) -> Iterator[LookResult]:
        """Look at each key once, some thousand at a time. ``now`` is µs, before the first read.

        Raises `reconcilers.words.errors.Retryable`, or `Refused`, if it is not one key that fails.
        """
        together, apart = list[Wake](), self.look.apart
        for wake in wakes:
            if not apart or wake.slot not in apart:
                together.append(wake)
            elif wake.looked_again:
                yield from self._in_slices([wake], now)
            else:
                yield self._left(wake)
        yield from self._in_slices(together, now)

    def _in_slices(self, wakes: Iterable[Wake], now: Micros) -> Iterator[LookResult]:
        some: list[Wake] = []
        failed: list[tuple[Wake, str]] = []
        for wake in wakes:
            for each in self._led_to(wake, failed):
                some.append(each)
                if len(some) >= KEYS_A_LOOK:
                    yield from self._read(some, now)
                    some = []
        yield from self._read(some, now)
        yield from (self._unread(wake, why) for wake, why in failed)

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

    def _led_to(self, wake: Wake, failed: list[tuple[Wake, str]]) -> Iterator[Wake]:
        """The wake itself; before it, where it stands for a whole group, the keys there."""
        slot, family = wake.slot, self.look.family
        if slot is None and wake.source is None and wake.group is not None:
            yield from self._remembered_there(wake, wake.group)
        elif slot is not None and family.is_whole_group(slot):
            try:
                for each, named in self.look.tables.slots_of_group(family.listing, slot.group):
                    yield look_again(each, NO_PROJECTION, named)
            except ReadFailed as error:
                failed.append((wake, str(error)))
                return
        yield wake

    def _remembered_there(self, wake: Wake, group: KeyValue) -> Iterator[Wake]:
        """The keys of its group that it may mean; no delete is told to have meant this very one."""
        for slot, source in self.look.lineage.of_group(group):
            if wake.covers(slot):
                yield replace(
                    wake,
                    key=slot.key,
                    source=source,
                    deleted_from=None,
                    deleted_at=None,
                    from_truth=False,
                )

    # --- what is not read

    def _left(self, wake: Wake) -> LookResult:
        """It is known to be unreadable: what it tells of deletes and changes is kept."""
        look = self.look
        LineageRecorder(look.family, look.lineage, look.watched_since).deletes([wake])
        return self._counted(wake, ())

    def _unread(self, wake: Wake, why: str) -> LookResult:
        """It cannot be read; where it names no row, that is said of its whole group."""
        place = wake.slot or self.look.family.whole_group(wake.group)
        sources = frozenset[KeyValue]() if wake.source is None else frozenset({wake.source})
        listing = self.look.family.listing.name
        suspect = Suspect(place, sources, None, listing, wake.oldest, unreadable=why)
        return self._counted(wake, (suspect,))

    def _counted(self, wake: Wake, suspects: tuple[Suspect, ...]) -> LookResult:
        """Its changes, and where they were as far as that is known."""
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
