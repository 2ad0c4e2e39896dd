"""Before step 3: keys whose slots are plainly right are done, for a few microseconds each.

`reconcilers.rows.glance` decides what is right, over undecoded rows. All other keys go to
`streaming.steps.look.Look` as if there had been no glance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from itertools import count as count_up
from typing import Any

from checkpoints.lineage import RawLineage
from reconcilers.declared.family import Family, Projection
from reconcilers.declared.raw import RawCell, RawKey, RawRow, RawShape
from reconcilers.rows import glance
from reconcilers.rows.belonging import Belonging
from reconcilers.rows.glance import Asked, Elements, Keys
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import KeyValue, Micros
from streaming.steps.ports import RawTables


@dataclass(frozen=True, slots=True)
class Glanced:
    """The slots that are plainly right, counted in the same way as by a look.

    ``left`` holds the numbers of the wakes that still need a look. ``changes`` is as in
    `streaming.steps.look.LookResult`, ``touched`` are the keys of its slots.
    """

    left: Sequence[int]
    examined: int = 0
    changes: Mapping[KeyValue, int] = field(default_factory=dict)
    touched: Sequence[tuple[KeyValue, ...]] = ()


class Glance:
    """Glances at keys of one family. Not shared between threads."""

    def __init__(
        self, family: Family, shape: RawShape, tables: RawTables, lineage: RawLineage
    ) -> None:
        self.shape, self._tables, self._lineage = shape, tables, lineage
        self._belonging = [
            (each, Belonging(each, shape.truth, tables.decoded)) for each in family.projections
        ]

    def at(self, keys: Keys, watched_since: Micros | None) -> Glanced:
        """Count the keys that are plainly right, and name the others.

        If a server refuses or fails a read, all keys are left to the look, which reports the
        failure. Raises `reconcilers.words.errors.Retryable`: the glance is then repeated.
        """
        asked = glance.asked(self.shape, keys)
        return _counted(keys, [asked.wakes_of[key] for key in self.right(asked, watched_since)])

    def right(self, asked: Asked, watched_since: Micros | None) -> Mapping[RawKey, RawRow]:
        """The slots that are plainly right, with their truth rows; errors are those of `at`."""
        if not asked.wakes_of:
            return {}
        try:
            # lineage is read first: if it has no entry of a row, nothing else of it is read here
            entries = self._lineage.entries(asked.wakes_of)
            return self._true(glance.remembered(asked, entries, watched_since), None)
        except (Refused, ReadFailed):
            return {}

    def agreeing(self, sources: Mapping[RawKey, RawCell]) -> Collection[RawKey]:
        """Which of these slots, each with its source, agree in all tables; lineage is not read.

        None of them if a server refuses or fails a read. Raises `Retryable`.
        """
        try:
            return self._true(sources, None).keys()
        except (Refused, ReadFailed):
            return ()

    def of_scan(
        self, asked: Asked, watched_since: Micros | None, truths: Iterable[RawRow]
    ) -> tuple[Mapping[RawKey, RawRow], Sequence[RawKey]]:
        """As `right`, and the slots of them that lineage has yet to record.

        ``truths`` are all truth rows of the requested sources.
        """
        if not asked.wakes_of:
            return {}, ()
        try:
            entries = list(self._lineage.entries(asked.wakes_of))
            known = glance.remembered(asked, entries, watched_since)
            new = glance.to_record(asked, entries, known)
            right = self._true(known | new, truths)
        except (Refused, ReadFailed):
            return {}, ()
        return right, [key for key in right if key in new]

    def _true(
        self, sources: Mapping[RawKey, RawCell], truths: Iterable[RawRow] | None
    ) -> Mapping[RawKey, RawRow]:
        """The slots that both sides and the indexes agree on, with their truth rows."""
        (_, belongs), *indexes = self._belonging
        rows = glance.listed(self.shape, sources, self._tables.listing(sources))
        if truths is None:
            truths = self._tables.truth({sources[key] for key in rows})
        right = glance.true(self.shape, belongs, rows, truths)
        for index, belongs in indexes:
            if index.collects is None:
                right = glance.indexed(belongs, right, set(self._tables.index(index, right)))
            else:
                at = self.shape.truth.index(index.collects)
                adding = {key for key, truth in right.items() if belongs.of(truth)}
                right = self._collected(index, index.collects, at, right, adding)
        return right

    def of_listing(self, rows: Sequence[RawRow], watched_since: Micros | None) -> Sequence[RawRow]:
        """For each listing row that only its truth could make wrong: what the truth must say.

        Empty if a server refuses or fails a read. Raises `reconcilers.words.errors.Retryable`.
        """
        try:
            return self._of_listing(rows, watched_since)
        except (Refused, ReadFailed):
            return []

    def _of_listing(self, rows: Sequence[RawRow], watched_since: Micros | None) -> Sequence[RawRow]:
        self._tables.require_comparable()
        named = self.shape.source[1]
        asked = glance.scanned(rows, len(self.shape.encode) - 1, named)
        entries = self._lineage.entries(asked.wakes_of)
        sources = glance.remembered(asked, entries, watched_since)
        right = glance.listed(self.shape, sources, rows)
        have: list[set[RawKey]] = []
        for index, _ in self._belonging[1:]:
            if index.collects is None:
                have.append(set(self._tables.index(index, right)))
            else:
                at = self.shape.listing.index(index.collects)
                right = self._collected(
                    index, index.collects, at, right, {key for key, row in right.items() if row[at]}
                )
        return [
            glance.expected(named, row, [key in keys for keys in have])
            for key, row in right.items()
        ]

    def of_truth(self, truths: Iterable[RawRow]) -> Sequence[tuple[RawRow, RawRow]]:
        """Truth rows, each with the value that `of_listing` must return for the row to be right.

        ``truths`` are all rows of each source. Empty if the columns cannot be compared undecoded.
        """
        try:
            self._tables.require_comparable()
        except Refused:
            return []
        (_, listed_if), *indexes = self._belonging
        indexed_if = [belongs for index, belongs in indexes if index.collects is None]
        return list(glance.told(self.shape, listed_if, indexed_if, truths))

    def _collected(
        self,
        index: Projection,
        column: str,
        at: int,
        right: Mapping[RawKey, RawRow],
        adding: Collection[RawKey],
    ) -> dict[RawKey, RawRow]:
        """The keys of ``right`` that are also right in an index that collects ``column``.

        The index row of each group is read once; groups to which nothing belongs are not read.
        ``at`` is the position of the cell with the elements that a row adds.
        """
        width = len(index.key)
        groups = {key[:width] for key in adding}
        there = dict(self._tables.collected(index, groups)) if groups else {}
        known: dict[RawCell, Elements] = {}

        def elements(row: RawRow) -> Elements:
            cell = row[at]
            if cell not in known:
                value = self._tables.decoded(column, cell)
                known[cell] = value if isinstance(value, frozenset) else glance.NONE
            return known[cell]

        return glance.collected(width, right, adding, elements, there)


def _counted(keys: Keys, right: Sequence[Sequence[int]]) -> Glanced:
    left = [True] * len(keys.keys)
    changes: Counter[KeyValue] = Counter()
    touched: list[tuple[KeyValue, ...]] = []
    for numbers in right:
        count = 0
        for number in numbers:
            left[number] = False
            count += keys.changes[number]
        if count:
            key: Any = keys.keys[numbers[0]]  # a plain key has no part missing
            changes[key[0]] += count
            touched.append(key)
    return Glanced([*compress(count_up(), left)], len(right), changes, touched)
