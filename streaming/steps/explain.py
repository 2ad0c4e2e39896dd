"""Steps 3 to 5 for one place, and the write that step 6 would send. Nothing is written.

The reads, rules and plan are those of `streaming.steps.examine`: the stream would do the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from checkpoints.lineage import Lineage
from reconcilers.declared.family import Family, Projection
from reconcilers.rows.deletes import Deletes, RowDeletes
from reconcilers.rows.memory import Entry
from reconcilers.rows.plan import Plan, plan
from reconcilers.words.model import KeyValue, LookAgain, Repair, Report, Slot, Suspect, Verdict
from streaming.steps.confirmed_suspect import ConfirmedSuspect
from streaming.steps.examine import Examiner


@dataclass(frozen=True, slots=True)
class ExplainedProjection:
    """One projection at one place: how it was confirmed, and what follows.

    If ``verdict`` is to look again, ``later`` is the verdict once all events have come and nothing
    has changed. ``planned`` is the write for a repair, or why the write cannot be guarded.
    """

    projection: Projection
    case: ConfirmedSuspect
    verdict: Verdict
    later: Verdict | None
    planned: Plan | Report | None

    @property
    def settled(self) -> Verdict:
        """The verdict that holds if nothing changes."""
        return self.verdict if self.later is None else self.later


@dataclass(frozen=True, slots=True)
class Remembered:
    """What lineage holds of one place: its entries, and the deletes that were received (µs)."""

    entries: tuple[Entry, ...]
    truth_deletes: Mapping[KeyValue, Deletes]
    projection_deletes: RowDeletes


@dataclass(frozen=True, slots=True)
class ExplainedPlace:
    """One slot, in all projections of its family."""

    slot: Slot
    projections: tuple[ExplainedProjection, ...]
    memory: Remembered


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains places of one family; ``examiners`` has one for each projection, in order."""

    family: Family
    lineage: Lineage
    examiners: tuple[Examiner, ...]

    def places_of(self, source: KeyValue) -> tuple[Slot, ...]:
        """All slots that a source has in the truth or in lineage, sorted."""
        tables = self.examiners[0].confirmation.tables
        rows = tables.truth_serially([source]).get(source, ())
        slots = {self.family.truth.slot_of(row) for row in rows}
        slots |= {entry.slot for entry in self.lineage.of_sources([source]).get(source, ())}
        return tuple(sorted(slots, key=str))

    def place(self, slot: Slot, sources: Iterable[KeyValue] = ()) -> ExplainedPlace:
        """Explain one slot; ``sources`` may claim it. Raises `Retryable`, `Refused`."""
        asked = frozenset(sources)
        explained = tuple(self._projection(each, slot, asked) for each in self.examiners)
        consulted = asked.union(*(each.case.seen.consulted for each in explained))
        return ExplainedPlace(slot, explained, self._remembered(slot, consulted))

    def _remembered(self, slot: Slot, sources: frozenset[KeyValue]) -> Remembered:
        return Remembered(
            tuple(self.lineage.of_slots([slot]).get(slot, ())),
            {
                each: self.lineage.truth_deletes(each, slot.group)
                for each in sorted(sources, key=str)
            },
            self.lineage.projection_deletes(slot),
        )

    def _projection(
        self, examiner: Examiner, slot: Slot, sources: frozenset[KeyValue]
    ) -> ExplainedProjection:
        projection = examiner.projection
        suspect = Suspect(slot, sources, None, projection.name)
        (case,) = examiner.confirmed([suspect], examiner.clock(), "")
        verdict = examiner.verdict(case)
        last, rules = verdict, examiner.rules
        for passes in (rules.delay, rules.heard_within + rules.delay):
            if not isinstance(last, LookAgain):
                break
            moment = case.moment.after(passes)
            seen = replace(case.seen, suspected=last.difference.kind)
            case = replace(case, moment=moment, seen=seen)
            last = examiner.verdict(case)
        later = None if last is verdict else last
        planned = None
        if isinstance(last, Repair):
            attempt = 0 if case.previous is None else case.previous.attempts
            planned = plan(projection, case.seen, last.difference, case.moment, attempt)
        return ExplainedProjection(projection, case, verdict, later, planned)
