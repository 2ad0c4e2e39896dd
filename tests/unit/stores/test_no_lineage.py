"""The lineage that stores nothing answers like one in which nothing was ever stored."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from checkpoints.lineage import Lineage
from checkpoints.no_lineage import NoLineage
from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.memory import Entry
from reconcilers.words.model import Slot
from tests.builders.rights import BOB, SHARED, place
from tests.fakes.checkpoints.memory import MemoryLineage

AT = 1_700_000_000_000_000
READS: dict[str, Callable[[Lineage], object]] = {
    "of_sources": lambda each: each.of_sources([SHARED]),
    "of_slots": lambda each: each.of_slots([place()]),
    "of_group": lambda each: list(each.of_group(BOB)),
    "of_group_from": lambda each: list(each.of_group_from(BOB, UUID(int=0))),
    "truth_deletes": lambda each: each.truth_deletes(SHARED, BOB),
    "truth_deletes_of": lambda each: each.truth_deletes_of({BOB: [SHARED]}),
    "projection_deletes": lambda each: each.projection_deletes(place()),
    "projection_deletes_of": lambda each: each.projection_deletes_of([place(), Slot("x", SHARED)]),
    "truth_deletes_in_group": lambda each: each.truth_deletes_in_group(BOB, 0, AT),
    "watching": lambda each: each.watching(),
}


def filled(lineage: Lineage) -> Lineage:
    entry = Entry(SHARED, place(), True, AT)
    lineage.remember([entry])
    lineage.remember_deletes([TruthDelete(SHARED, place().key, AT), ProjectionDelete(place(), AT)])
    lineage.keep_deletes({(SHARED, BOB): [place()]})
    lineage.expire([entry])
    lineage.watch_from(AT)
    lineage.mark_swept(AT, AT)
    lineage.mark_listed(AT, AT)
    return lineage


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_each_answer_is_that_of_an_empty_lineage(read: Callable[[Lineage], object]) -> None:
    assert read(filled(NoLineage())) == read(MemoryLineage())


def test_it_stops_watching_as_often_as_it_is_told() -> None:
    lineage = NoLineage()
    lineage.stop_watching()
    assert lineage.watching() is None
