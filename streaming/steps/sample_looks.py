"""Read-only looks at sampled changes: is each projection right now? Nothing is recorded of them.

A glance, if the family has one, finds the keys that are right in all tables, for a fraction of the
cost. Only the others are read decoded and with write times, to tell what differs and since when.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconcilers.declared.family import Family, Projection
from reconcilers.rows.compare import compare
from reconcilers.rows.glance import slot_and_source
from reconcilers.rows.sample import SampledChange, SampledLook, SampleResult, result_of
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import ReadFailed, Refused, Retryable
from reconcilers.words.model import KeyValue, Row, Slot
from streaming.steps.glance import Glance
from streaming.steps.ports import ConfirmTables

CONSISTENT = SampleResult.CONSISTENT
Results = Mapping[str, SampleResult]
"""The results of one look, by projection; one that could not be read is left out."""


@dataclass(frozen=True, slots=True)
class SampledLooks:
    """Looks at places of one family. It reads the projections first and the truth second.

    A change between the reads has a newer write time, so the look says nothing of its change.
    A key that is right is consistent, also if a newer change made it so.
    """

    family: Family
    tables: ConfirmTables
    glance: Glance | None = None

    def at(self, looks: Sequence[SampledLook]) -> list[Results]:
        """The results of these looks, in their order; none of those that could not be read."""
        try:
            right = self._right([each.change for each in looks])
        except Retryable:
            return [{} for _ in looks]
        all_right = dict.fromkeys((p.name for p in self.family.projections), CONSISTENT)
        rest = iter(self._decoded([each for each in looks if each.change not in right]))
        return [all_right if each.change in right else next(rest) for each in looks]

    def _right(self, changes: Iterable[SampledChange]) -> Collection[SampledChange]:
        """The changes whose keys are right in all tables, by a glance."""
        if self.glance is None:
            return ()
        shape = self.glance.shape
        asked = {each: slot_and_source(shape, each.slot, each.source) for each in changes}
        sources = dict(asked.values())
        found = self.glance.agreeing(sources)
        return {
            each for each, (key, named) in asked.items() if key in found and sources[key] == named
        }

    def _decoded(self, looks: Sequence[SampledLook]) -> list[Results]:
        if not looks:
            return []
        slots = list(dict.fromkeys(each.change.slot for each in looks))
        rows = {each.name: self._rows(each, slots) for each in self.family.projections}
        try:
            truths = self.tables.truth_with_times({each.change.source for each in looks})
        except (Retryable, Refused, ReadFailed):
            return [{} for _ in looks]
        return [self._result(each, rows, truths) for each in looks]

    def _rows(self, projection: Projection, slots: Sequence[Slot]) -> Mapping[Slot, Row] | None:
        """The rows of a projection; None if it cannot be read now."""
        try:
            return self.tables.projection_rows(projection, slots)
        except (Retryable, Refused, ReadFailed):
            return None

    def _result(
        self,
        look: SampledLook,
        rows: Mapping[str, Mapping[Slot, Row] | None],
        truths: Mapping[KeyValue, tuple[Row, ...]],
    ) -> Results:
        slot, of_slot = look.change.slot, self.family.truth.slot_of
        its = tuple(each for each in truths.get(look.change.source, ()) if of_slot(each) == slot)
        newest = max((each.newest for each in its if each.newest is not None), default=None)
        listed = (rows[self.family.listing.name] or {}).get(slot)
        results = {}
        for projection in self.family.projections:
            found = rows[projection.name]
            if found is not None:
                seen = Seen(slot, found.get(slot), its, listed=listed is not None)
                difference = compare(self.family, projection, seen)
                kind = None if difference is None else difference.kind
                results[projection.name] = result_of(look, kind, newest)
        return results
