"""Read-only looks at sampled changes, on fakes."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import bind, keeping
from reconcilers.rows.sample import AGES, SampledChange, SampledLook, SampleResult
from reconcilers.words.errors import ReadFailed
from reconcilers.words.model import Row, Slot
from streaming.steps.sample_looks import SampledLooks
from tests.builders.glances import glance_of
from tests.builders.indexes import INDEX_SCHEMA, INDEXED
from tests.builders.rows import (
    COMPLETE,
    FAMILY,
    MAILBOX,
    MESSAGE_ID,
    NOW,
    OTHER_ID,
    PROJECTION,
    SCHEMA,
    SECOND,
    SLOT,
)
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.memory_tables import MemoryTables
from tests.fakes.raw_tables import RawMemoryLineage, RawMemoryTables

LOOK = SampledLook(NOW + AGES[0], AGES[0], SampledChange(SLOT, MESSAGE_ID, NOW))
TRUTH = Row(dict(COMPLETE), {"modseq": NOW})
LISTED = Row(dict(COMPLETE), {"modseq": NOW + SECOND})
"""Written a second after the truth, as James does: that is no newer change."""


class Silent(MemoryTables):
    """The truth cannot be read."""

    def truth_with_times(self, _messageids):  # type: ignore[no-untyped-def]
        raise ReadFailed("it fails")


def tables(listed: Row | None = None) -> MemoryTables:
    rows = {} if listed is None else {SLOT: listed}
    return MemoryTables({MESSAGE_ID: (TRUTH,)}, {PROJECTION.name: rows})


def result(of: MemoryTables, look: SampledLook = LOOK) -> SampleResult:
    ((_, found),) = SampledLooks(FAMILY, of).at([look])[0].items()
    assert of.applied == [], "looks write nothing"
    return found


def test_equal_sides_are_consistent_and_others_are_not() -> None:
    assert result(tables(LISTED)) is SampleResult.CONSISTENT
    assert result(tables()) is SampleResult.INCONSISTENT
    stale = Row({**COMPLETE, "flagseen": False})
    assert result(tables(stale)) is SampleResult.INCONSISTENT


def test_a_newer_truth_or_none_says_nothing_of_this_change() -> None:
    older = SampledLook(LOOK.due, LOOK.age, replace(LOOK.change, written=NOW - 1))
    assert result(tables(), older) is SampleResult.OVERTAKEN
    gone = replace(LOOK, change=replace(LOOK.change, source=OTHER_ID))
    assert result(tables(LISTED), gone) is SampleResult.OVERTAKEN


def test_a_projection_that_cannot_be_read_is_missing_alone() -> None:
    schema = SCHEMA | {"messagedeleted": {"mailboxid": "timeuuid", "uid": "bigint"}}
    family = bind(keeping(MESSAGE, ("deleted_uids",)), schema)

    class Refusing(MemoryTables):
        def projection_rows(self, projection, slots):  # type: ignore[no-untyped-def]
            if projection.name == "deleted_uids":
                raise ReadFailed("it fails")
            return super().projection_rows(projection, slots)

    refusing = Refusing({MESSAGE_ID: (TRUTH,)}, {PROJECTION.name: {SLOT: LISTED}})
    (found,) = SampledLooks(family, refusing).at([LOOK])
    assert found == {PROJECTION.name: SampleResult.CONSISTENT}


def test_without_the_truth_nothing_was_looked_at() -> None:
    assert SampledLooks(FAMILY, Silent()).at([LOOK, LOOK]) == [{}, {}]
    assert SampledLooks(FAMILY, MemoryTables()).at([]) == []


def test_a_glance_tells_what_is_right_and_the_others_are_read_in_detail() -> None:
    raw = RawMemoryTables(INDEXED, INDEX_SCHEMA)
    looks = []
    for uid in (1, 2):
        cells = {**COMPLETE, "uid": uid, "messageid": UUID(int=MESSAGE_ID.int + uid)}
        cells |= {"flagdeleted": False, "flagrecent": False, "userflags": frozenset()}
        raw.put("imapuidtable", **cells)
        raw.put("messageidtable", **cells | {"modseq": 11 + uid})
        change = SampledChange(Slot(MAILBOX, uid), UUID(int=MESSAGE_ID.int + uid), NOW)
        looks.append(replace(LOOK, change=change))
    memory = RawMemoryLineage(INDEXED, MemoryLineage())
    (right, other) = SampledLooks(INDEXED, Silent(), glance_of(INDEXED, raw, memory).glance).at(
        looks
    )
    assert right == {each.name: SampleResult.CONSISTENT for each in INDEXED.projections}
    assert other == {}, "it was left to the tables, which do not answer"
