"""The two passes of a batch, and what the driver does between and after them, in which order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from checkpoints.clock import MICROS_A_MILLI
from reconcilers.errors import CorruptCheckpoint
from reconcilers.finding import Action
from reconcilers.model import Micros, Suspect, Wake
from reconcilers.policy import Admission
from streaming.commands import workers
from streaming.pipeline.batch_record import BatchPlace
from streaming.pipeline.query import EARLIEST, FamilyQuery
from streaming.pipeline.worker import BatchLook
from streaming.settings import Settings
from streaming.steps.outcome import Outcome
from tests.builders.rows import FAMILY, MESSAGE_ID, PROJECTION, SLOT

BATCH_MS = 1_700_000_000_123
LOOK = BatchLook([Suspect(SLOT, frozenset({MESSAGE_ID}), None, PROJECTION.name)], examined=1)
ADMITTED = Admission(repairs="not now")
OUTCOMES = [Outcome(SLOT, Action.NOTHING, None)]
DUE = [Wake(SLOT.key, None, looked_again=True)]
TOPIC = "james.mail.imapuidtable"


@dataclass
class Decisions:
    """Takes down what it is told."""

    told: list[tuple[Any, ...]] = field(default_factory=list)

    def admit(self, look: BatchLook, now: Micros) -> Admission:
        self.told.append(("admit", look, now))
        return ADMITTED

    def record_outcomes(self, outcomes: list[Outcome]) -> None:
        self.told.append(("outcomes", outcomes))

    def later_looks(self, now: Micros) -> list[Wake]:
        self.told.append(("later",))
        return DUE

    def ended(self, look: BatchLook, batch: BatchPlace) -> None:
        self.told.append(("ended", look, batch.name, batch.start, batch.plan.end))


@dataclass(slots=True)
class Query(FamilyQuery):
    """Without Spark: its passes take down what they are given."""

    told: list[tuple[Any, ...]] = field(default_factory=list)

    def _look(self, settled: Any) -> BatchLook:
        self.told.append(("look", settled))
        return LOOK

    def _confirm_and_repair(
        self, suspects: list[Suspect], admission: Admission, batch: str
    ) -> list[Outcome]:
        self.told.append(("repair", suspects, admission, batch))
        return OUTCOMES

    def publish(self, wakes: Iterable[Wake]) -> None:
        self.told.append(("publish", wakes))


def planned(checkpoint: Path, batch_id: int, end: int) -> None:
    """As Spark writes the plan of a batch."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "metadata").write_text('{"id":"7d1f"}')
    times = {"batchTimestampMs": BATCH_MS, "batchWatermarkMs": 5}
    plan = ["v1", json.dumps(times), json.dumps({TOPIC: {"0": end}})]
    (checkpoint / "offsets" / str(batch_id)).write_text("\n".join(plan))


@pytest.fixture
def query(tmp_path: Path) -> Query:
    decisions = Decisions()
    job = workers.job(Settings(), FAMILY, "suspects")
    made = Query(None, job, tmp_path, decisions, lambda topic: [0, 1])  # type: ignore[arg-type]
    made.told = decisions.told
    return made


def test_a_batch_is_admitted_before_it_is_repaired_and_recorded_at_its_end(query: Query) -> None:
    planned(query.checkpoint, 0, end=10)
    query._batch("the keys", 0)  # type: ignore[arg-type]
    assert query.told == [
        ("look", "the keys"),
        ("admit", LOOK, BATCH_MS * MICROS_A_MILLI),
        ("repair", LOOK.suspects, ADMITTED, "7d1f/0"),
        ("outcomes", OUTCOMES),
        ("later",),
        ("publish", DUE),
        ("ended", LOOK, "7d1f/0", {}, {TOPIC: {0: 10}}),
    ]


def test_a_batch_began_where_the_one_before_it_ended(query: Query) -> None:
    for number in range(2):
        planned(query.checkpoint, number, end=10 * (number + 1))
    query._batch("the keys", 1)  # type: ignore[arg-type]
    assert query.told[-1] == ("ended", LOOK, "7d1f/1", {TOPIC: {0: 10}}, {TOPIC: {0: 20}})


@pytest.mark.parametrize("gone", ["metadata", "offsets/0"])
def test_a_checkpoint_that_does_not_hold_its_batch_is_corrupt(query: Query, gone: str) -> None:
    planned(query.checkpoint, 0, end=10)
    (query.checkpoint / gone).unlink()
    with pytest.raises(CorruptCheckpoint, match="does not hold batch 0"):
        query._batch("the keys", 0)  # type: ignore[arg-type]
    assert query.told == []


def test_without_a_bookmark_all_that_kafka_has_is_read(query: Query) -> None:
    assert query._starting_offsets((TOPIC,)) == "earliest"


def test_a_fresh_start_names_every_partition(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Query, "start", lambda _query: None)
    query.start_fresh({TOPIC: {1: 40}})
    assert json.loads(query._starting_offsets((TOPIC,))) == {TOPIC: {"0": EARLIEST, "1": 40}}
    planned(query.checkpoint, 0, end=50)
    query._batch("the keys", 0)  # type: ignore[arg-type]
    assert query.told[-1][3] == {TOPIC: {1: 40}}
