"""The shares of the workers as one: a slot of a projection is settled once a batch."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from checkpoints.clock import now_micros, to_micros
from reconcilers.declared.family import Family, Projection
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action
from reconcilers.words.model import Kind, Slot, Suspect
from streaming.pipeline.arrow import WriteTimes
from streaming.pipeline.repair_task import repair_task
from streaming.pipeline.suspects import each_once
from streaming.pipeline.worker import (
    BatchLook,
    Connections,
    Job,
    read_looks,
    unlimited,
)
from streaming.settings import Settings
from streaming.steps.examine import Examiner
from streaming.steps.outcome import Outcome
from streaming.steps.permit import Permit
from tests.builders.clocks import OneNode
from tests.builders.found import finding_at, suspect_at
from tests.builders.indexes import DELETED, INDEXED
from tests.builders.permits import unpaused
from tests.builders.rows import LONG_AGO, MAILBOX, MESSAGE_ID, NOW, OTHER_ID, SLOT, row
from tests.builders.slots import uid_of
from tests.fakes.checkpoints.memory import MemoryExpiries

ONE = suspect_at(SLOT, None, [MESSAGE_ID], oldest=NOW)
AGAIN = {"looked_again": True, "suspected": Kind.EXTRA_ROW}
OTHER = suspect_at(SLOT, Kind.EXTRA_ROW, [OTHER_ID], oldest=LONG_AGO, **AGAIN)
BOTH = replace(OTHER, sources=frozenset({MESSAGE_ID, OTHER_ID}))


def test_two_suspects_of_one_slot_are_one_with_all_that_either_knows() -> None:
    assert each_once([ONE, OTHER]) == [BOTH]
    assert each_once([OTHER, ONE]) == [BOTH]


def test_an_unknown_age_does_not_hide_a_known_one() -> None:
    (merged,) = each_once([replace(ONE, oldest=None), OTHER])
    assert merged.oldest == LONG_AGO


def test_why_one_of_them_could_not_be_read_is_kept() -> None:
    one = suspect_at(SLOT, None)
    bad = replace(one, unreadable="too many tombstones")
    assert each_once([one, bad]) == each_once([bad, one]) == [bad]


@pytest.mark.parametrize(
    "elsewhere", [{"projection": "deleted_uids"}, {"slot": Slot(MAILBOX, uid_of(SLOT) + 1)}]
)
def test_suspects_of_different_projections_or_slots_are_kept_apart(
    elsewhere: dict[str, Any],
) -> None:
    other = replace(ONE, **elsewhere)
    assert each_once([ONE, other]) == [ONE, other]


def test_what_two_workers_found_at_one_slot_is_settled_once() -> None:
    shares = [
        BatchLook([ONE], examined=3, times=WriteTimes(fast_writers=1)),
        BatchLook([OTHER], examined=4, times=WriteTimes(NOW, fast_writers=2)),
    ]
    whole = read_looks(pickle.dumps(share) for share in shares)
    assert whole.suspects == [BOTH]
    assert whole.examined == 7
    assert whole.times == WriteTimes(NOW, 3)


# --- what the workers tell of repairs -------------------------------------------------------------


@dataclass
class Examined:
    """In an `Examiner`'s place: one finding for each suspect, with all that it holds."""

    projection: Projection

    def examine(self, suspects: Sequence[Suspect], _permit: Permit, batch: str) -> list[Outcome]:
        held: dict[str, Any] = {"projection": self.projection.name, "batch": batch, "before": row()}
        return [
            Outcome(each.slot, Action.REPAIR, finding_at(each.slot, Kind.EXTRA_ROW, **held))
            for each in suspects
        ]


def examined(_job: Job, projection: Projection) -> Examiner:
    return cast(Examiner, Examined(projection))


def on_right_clocks(_settings: Settings, _family: Family) -> Connections:
    return cast(
        Connections, SimpleNamespace(clocks=OneNode().watch(), pauses=unpaused(), share=unlimited)
    )


def test_findings_come_back_without_the_rows_that_they_hold() -> None:
    job = Job(Settings(), INDEXED, "suspects", on_right_clocks, examined)
    index = replace(ONE, projection=DELETED.name)
    outcomes = list(repair_task(job, "batch")([(Admission(), [ONE, index])]))
    findings = [each.finding for each in outcomes if each.finding is not None]
    assert [each.projection for each in findings] == ["messages", DELETED.name]
    assert {each.before for each in findings} == {None}


def test_what_waits_for_a_table_comes_back_between_one_and_two_intervals_later() -> None:
    expiries, waiting = MemoryExpiries(), Outcome(SLOT, Action.LOOK_LATER, None)

    def connected(_settings: Settings, _family: Family) -> Connections:
        ours = SimpleNamespace(
            clocks=OneNode().watch(), pauses=unpaused(), expiries=expiries, share=unlimited
        )
        return cast(Connections, ours)

    def examines(_job: Job, _projection: Projection) -> Examiner:
        return cast(Examiner, SimpleNamespace(examine=lambda *_: [waiting]))

    job = Job(Settings(), INDEXED, "suspects", connected, examines)
    began, every = now_micros(), to_micros(job.settings.repair.recheck_interval)
    assert list(repair_task(job, "batch")([(Admission(), [ONE])]))
    (expected,) = set(expiries.between(0, 2**62))
    assert expected.slot == SLOT
    assert began + every < expected.due <= now_micros() + 2 * every
