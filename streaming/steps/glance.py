"""Before step 3: the keys whose slots are plainly right are done, for a few microseconds each.

What is right is decided by `reconcilers.rows.glance`, over rows that nobody decodes. All others go
to `streaming.steps.look.Look` as if nobody had glanced at them.
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
    """What was plainly right, counted as a look counts it.

    ``left`` are the numbers of the wakes that are to be looked at. ``changes`` are those of
    `streaming.steps.look.LookResult`, ``touched`` the keys of its slots.
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
        """Those of these keys that are plainly right, and the others.

        What a server refuses or fails to read leaves all to the look, which says so. Raises
        `reconcilers.words.errors.Retryable`: all is then done again.
        """
        asked = glance.asked(self.shape, keys)
        right = self.right(asked, watched_since)
        return _counted(keys, [asked.wakes_of[key] for key in right])

    def right(
        self,
        asked: Asked,
        watched_since: Micros | None,
        truths: Iterable[RawRow] | None = None,
    ) -> Mapping[RawKey, RawRow]:
        """The slots that are plainly right, with their truth; as `at` does otherwise.

        ``truths`` are all truth rows of the sources that are asked for, where those have been read.
        """
        if not asked.wakes_of:
            return {}
        (_, belongs), *indexes = self._belonging
        try:
            # what is remembered is asked first: of a row that is new no more is read here
            entries = self._lineage.entries(asked.wakes_of)
            sources = glance.remembered(asked, entries, watched_since)
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
        except (Refused, ReadFailed):
            return {}
        return right

    def of_listing(self, rows: Sequence[RawRow], watched_since: Micros | None) -> Sequence[RawRow]:
        """Of rows of the listing that are right but for their truth: what that must say.

        None of what a server refuses or fails to read. Raises `reconcilers.words.errors.Retryable`.
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
        """Truth rows that are right if their row of the listing is as they say; what they say.

        ``truths`` are all of each source; `of_listing` says the same of a row that is so.
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
        """Each group's row is read once; of those to which nothing belongs none.

        What these rows add is in their cell ``at``.
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
            key: Any = keys.keys[numbers[0]]  # a plain one: it is whole
            changes[key[0]] += count
            touched.append(key)
    return Glanced([*compress(count_up(), left)], len(right), changes, touched)
