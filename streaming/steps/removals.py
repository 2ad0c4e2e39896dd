"""Which groups (mailboxes) may lose rows: not those that have lost all, or most, of their truth.

A truncated or half-restored truth looks like that. Such a mailbox waits for a person.

Ten parts of a large mailbox are read: the oldest and the newest rows, and parts between them that
begin at UIDs (or times of ids) an equal distance apart. One part without most of its truth is
enough. None of these losses is overlooked, wherever its rows lie:

- The truth was truncated: every part has lost all.
- It was restored from an older copy: it lacks the newest rows, which are the last part.
- A period is missing: a ninth of the UIDs, or of the time in which a user's mailboxes were made,
  contains the beginning of at least one part.
- Ranges of tokens are missing, as of nodes without data: messages have random ids, so each part
  loses the same share, and shows it if that is more than half.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from checkpoints.journal import Journal
from reconcilers.declared.family import Family, Projection
from reconcilers.rows.halves import in_halves
from reconcilers.words.model import KeyValue, Kind, Row, Slot
from streaming.steps.ports import GroupTables, SourcedSlot

IDS_A_READ = 100
EXAMINED = 1000
"""Rows of a group that are read to judge it; it may have millions."""
PARTS = 10
"""Parts in which these rows are read of a larger group."""


@dataclass(slots=True)
class Removals:
    """Judges each group once.

    A group of fewer than ``empty_truth_min_rows`` rows may lose all of them. A larger group may
    lose fewer than that many.
    """

    family: Family
    projection: Projection
    tables: GroupTables
    empty_truth_min_rows: int
    _trusted: dict[KeyValue, bool] = field(default_factory=dict)

    def may_lose_rows(self, group: KeyValue) -> bool:
        """Whether the group is small, or no part of it has lost most of its truth."""
        if group not in self._trusted:
            self._trusted[group] = self._is_trusted(group)
        return self._trusted[group]

    def _is_trusted(self, group: KeyValue) -> bool:
        rows = iter(self.tables.slots_of_group(self.projection, group))
        whole = max(EXAMINED, self.empty_truth_min_rows)
        first = list(islice(rows, whole + 1))
        if len(first) < self.empty_truth_min_rows:
            return True
        if len(first) <= whole:
            return self._has_most(first, group)
        return all(self._has_most(part, group) for part in self._parts(group, first))

    def _parts(
        self, group: KeyValue, first: Sequence[SourcedSlot]
    ) -> Iterator[Sequence[SourcedSlot]]:
        """Parts of a large group, the newest rows first: a restored truth lacks those."""
        size = max(EXAMINED // PARTS, 2 * self.empty_truth_min_rows)
        some = self.tables.some_slots
        newest = list(some(self.projection, group, size, None))
        yield newest
        if not newest:  # the group was emptied meanwhile: nothing is left to lose
            return
        yield first[:size]
        begins, ends = first[0][0].key[1], max((slot.key[1] for slot, _ in newest), key=_place)
        for begin in between(begins, ends, PARTS - 2):
            yield list(some(self.projection, group, size, begin))

    def _has_most(self, rows: Sequence[SourcedSlot], group: KeyValue) -> bool:
        """Whether few of these rows have lost their truth, or no more than still have it.

        Rows of one source are counted each, and their truth is read once.
        """
        counted = Counter(source for _, source in rows if source is not None)
        sources, have, lost = list(counted), 0, 0
        for begin in range(0, len(sources), IDS_A_READ):
            some = self._have_truth(sources[begin : begin + IDS_A_READ], group)
            for source, has_truth in some:
                number = counted[source]
                have, lost = (have + number, lost) if has_truth else (have, lost + number)
            if 2 * have > counted.total():
                return True
        few = self.empty_truth_min_rows
        return (have > 0 or len(rows) < few) and (lost < few or lost <= have)

    def _have_truth(
        self, sources: Sequence[KeyValue], group: KeyValue
    ) -> Iterator[tuple[KeyValue, bool]]:
        """Whether each source has truth here; one that cannot be read is left out: it may have."""
        read = in_halves(sources, self._truths, self._read_nothing)
        place = self.family.truth.slot[0]
        for source, truths in (each for some in read.answers for each in some.items()):
            yield source, any(row.get(place) == group for row in truths)

    def _truths(self, sources: Sequence[KeyValue]) -> Mapping[KeyValue, tuple[Row, ...]]:
        return {**dict.fromkeys(sources, ()), **self.tables.truth_rows(sources)}

    def _read_nothing(self) -> None:
        self.tables.truth_rows([self.family.truth.source.of_no_row])


def may_be_unread(journal: Journal, family: Family, slot: Slot) -> bool:
    """Whether the truth may have an unreadable row here, as a finding of the slot or group says."""
    places = [slot, family.whole_group(slot.group)]
    found = journal.recall(family, family.listing.name, places)
    return any(each.kind is Kind.UNREADABLE for each in found.values())


def between(first: KeyValue, last: KeyValue, number: int) -> Iterator[KeyValue]:
    """So many parts of a key at equal distances, without both ends; none between texts."""
    if isinstance(first, str) or isinstance(last, str):
        return
    begins, distance = int(_place(first)), int(_place(last)) - int(_place(first))
    for each in range(1, number + 1):
        place = begins + distance * each // (number + 1)
        yield place if isinstance(first, int) else _at_time(place)


def _place(part: KeyValue) -> int | str:
    """Where Cassandra sorts a part of a key: a time UUID by its time."""
    return part.time if isinstance(part, UUID) else part


def _at_time(time: int) -> UUID:
    """The time UUID with this time, in 100 ns, that no other precedes by Cassandra's order."""
    fields = time & 0xFFFFFFFF, time >> 32 & 0xFFFF, time >> 48 & 0x0FFF | 0x1000, 0x80, 0x80
    return UUID(fields=(*fields, 0x808080808080))
