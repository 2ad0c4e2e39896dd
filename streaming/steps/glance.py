"""Before step 3: the keys whose slots are plainly right are done, for a few microseconds each.

What is right is decided by `reconcilers.glance`, over rows that nobody decodes. All others go to
`streaming.steps.look.Look` as if nobody had glanced at them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from checkpoints.lineage import RawLineage
from reconcilers import glance
from reconcilers.belonging import Belonging
from reconcilers.errors import ReadFailed, Refused
from reconcilers.family import Family
from reconcilers.glance import Asked
from reconcilers.model import KeyValue, Micros, Slot, Wake
from reconcilers.raw import RawKey, RawRow, RawShape
from streaming.steps.ports import RawTables


@dataclass(frozen=True, slots=True)
class Glanced:
    """What was plainly right, counted as a look counts it; ``left`` are the keys to be looked at.

    ``changes`` and ``touched`` are those of `streaming.steps.look.LookResult`.
    """

    left: Sequence[Wake]
    examined: int = 0
    changes: Mapping[KeyValue, int] = field(default_factory=dict)
    touched: tuple[Slot, ...] = ()


class Glance:
    """Glances at keys of one family. Not shared between threads."""

    def __init__(
        self, family: Family, shape: RawShape, tables: RawTables, lineage: RawLineage
    ) -> None:
        self._shape, self._tables, self._lineage = shape, tables, lineage
        self._belonging = [
            (each, Belonging(each, shape.truth, tables.decoded)) for each in family.projections
        ]

    def at(self, wakes: Sequence[Wake], watched_since: Micros | None) -> Glanced:
        """Those of these keys that are plainly right, and the others.

        What a server refuses or fails to read leaves all to the look, which says so. Raises
        `reconcilers.errors.Retryable`: all is then done again.
        """
        asked = glance.asked(self._shape, wakes)
        try:
            right = self._right(asked, watched_since) if asked.wakes_of else {}
        except (Refused, ReadFailed):
            right = {}
        return _counted(wakes, [asked.wakes_of[key] for key in right])

    def _right(self, asked: Asked, watched_since: Micros | None) -> Mapping[RawKey, RawRow]:
        """What is remembered is asked first: of a row that is new no more is read here."""
        (_, belongs), *indexes = self._belonging
        entries = self._lineage.entries(asked.wakes_of)
        sources = glance.remembered(asked, entries, watched_since)
        rows = glance.listed(self._shape, sources, self._tables.listing(sources))
        truths = self._tables.truth({sources[key] for key in rows})
        right = glance.true(self._shape, belongs, rows, truths)
        for index, belongs in indexes:
            keys: set[RawKey] = set()
            if index.collects is None:
                keys.update(self._tables.index(index, right))
            right = glance.indexed(index, belongs, right, keys)
        return right


def _counted(wakes: Sequence[Wake], right: Sequence[Sequence[int]]) -> Glanced:
    if not right:
        return Glanced(wakes)
    changes: Counter[KeyValue] = Counter()
    touched: list[Slot] = []
    for numbers in right:
        slot, count = wakes[numbers[0]].slot, sum([wakes[each].changes for each in numbers])
        assert slot is not None
        changes[slot.group] += count
        if count:
            touched.append(slot)
    done = {number for numbers in right for number in numbers}
    left = [wake for number, wake in enumerate(wakes) if number not in done]
    return Glanced(left, len(right), +changes, tuple(touched))
