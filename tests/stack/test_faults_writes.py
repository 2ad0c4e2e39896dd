"""Each write of the reconciler fails in each way, on a real Cassandra: nothing is lost or counted.

A write may be applied and reported as timed out, not be applied and time out, or be refused. The
batch is then executed again, as Spark does it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from checkpoints.clock import now_micros
from deploy.comparison.messages import Mismatch
from deploy.mailserver.mail import Clock, Message
from reconcilers.rows.finding import State
from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Slot
from tests.stack.rounds import (
    LONG_AGO,
    MOST_ATTEMPTS,
    Ground,
    Rounds,
    Rows,
)
from tests.stack.users import RIGHT, User, a_difference, a_message, slot_of

pytestmark = pytest.mark.stack

KINDS = (Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW)
TIMES = MOST_ATTEMPTS + 2
"""How often a write fails in a row: more often than a repair is attempted."""


class Fate(StrEnum):
    """What becomes of a write that fails."""

    APPLIED = "applied, but timed out"
    LOST = "timed out, never applied"
    REFUSED = "refused"


@dataclass
class Failing:
    """A port whose one method fails so many times; all else is passed on."""

    port: Any
    method: str
    fate: Fate
    times: int = TIMES
    calls: int = 0

    def __getattr__(self, name: str) -> Any:
        passed_on = getattr(self.port, name)
        return self._fail if name == self.method and self.times else passed_on

    def _fail(self, *arguments: Any) -> None:
        self.calls += 1
        self.times -= 1
        if self.fate is Fate.APPLIED:
            getattr(self.port, self.method)(*arguments)
        if self.fate is Fate.REFUSED:
            raise Refused(f"no right to {self.method}")
        raise Unreachable("no answer came in time")


@dataclass
class Stage:
    """One difference of each kind, and a stream that hears of them."""

    rounds: Rounds
    messages: dict[Kind, Message]
    rows: Rows
    failing: Failing | None = None

    def fail(self, port: str, method: str, fate: Fate, times: int = TIMES) -> Failing:
        """One write of one port fails from now on."""
        real = getattr(self.rounds.ground, port)
        self.failing = Failing(real, method, fate, times)
        setattr(self.rounds, port, self.failing)
        return self.failing

    @property
    def slots(self) -> list[Slot]:
        return [slot_of(message) for message in self.messages.values()]

    def differences(self) -> list[Mismatch]:
        return [
            each for message in self.messages.values() for each in self.rows.differences(message)
        ]

    def histories(self) -> dict[Kind, list[dict[str, Any]]]:
        return {
            kind: self.rounds.log_of(slot_of(message)) for kind, message in self.messages.items()
        }


@pytest.fixture
def stage(here: Ground) -> Stage:
    user = User(here.session, here.keyspace, Clock(-LONG_AGO // 1000).now_us)
    rounds = Rounds(here)
    messages = {}
    for kind in KINDS:
        messages[kind] = a_message(RIGHT, born=now_micros() - LONG_AGO)
        rounds.due += a_difference(kind, messages[kind], user)
    return Stage(rounds, messages, Rows(here.session, here.keyspace))


WRITES = (
    ("lineage", "remember"),
    ("lineage", "remember_deletes"),
    ("journal", "put"),
    ("tables", "apply"),
    ("journal", "close"),
    ("lineage", "expire"),
)


@pytest.mark.parametrize(("port", "method"), WRITES, ids=str)
@pytest.mark.parametrize("fate", [Fate.APPLIED, Fate.LOST], ids=str)
def test_a_write_without_an_answer_is_made_again_and_never_counted(
    stage: Stage, port: str, method: str, fate: Fate
) -> None:
    failing = stage.fail(port, method, fate)
    stage.rounds.round()
    stage.rounds.look_again_at(stage.slots)
    stage.rounds.round()
    assert failing.calls == TIMES if fate is Fate.LOST else failing.calls > 0
    assert stage.differences() == []
    assert stage.rounds.findings(stage.slots) == {}
    for lines in stage.histories().values():
        states = [line["state"] for line in lines]
        assert set(states) == {"intended", "verified"}
        assert states[-1] == "verified"
        assert max(line["attempts"] for line in lines) == 1


def test_a_key_that_could_not_be_published_costs_the_batch_and_not_the_repair(
    stage: Stage,
) -> None:
    failing = Failing(PublishedKeys(), "publish", Fate.LOST)
    stage.rounds.publish = failing.publish
    stage.rounds.round()
    stage.rounds.look_again_at(stage.slots)
    stage.rounds.round()
    assert failing.calls == len(KINDS)
    assert stage.differences() == []
    for lines in stage.histories().values():
        assert [(line["state"], line["attempts"]) for line in lines] == [
            ("intended", 1),
            ("verified", 1),
        ]


class PublishedKeys:
    """A topic that nobody reads."""

    def publish(self, wakes: object) -> None:
        """Keep nothing."""


def test_a_repair_is_in_the_journal_before_it_is_written(stage: Stage) -> None:
    before = {kind: stage.rows.projected(message) for kind, message in stage.messages.items()}
    stage.fail("journal", "put", Fate.REFUSED, times=1)
    with pytest.raises(Refused):
        stage.rounds.round()
    after = {kind: stage.rows.projected(message) for kind, message in stage.messages.items()}
    assert after == before
    stage.rounds.round()
    assert stage.differences() == []


@pytest.mark.parametrize(("port", "method"), WRITES[:3], ids=str)
def test_what_our_own_keyspace_refuses_stops_the_batch_until_it_is_granted(
    stage: Stage, port: str, method: str
) -> None:
    failing = stage.fail(port, method, Fate.REFUSED)
    for _ in range(TIMES):
        with pytest.raises(Refused):
            stage.rounds.round()
    assert failing.calls == TIMES
    assert len(stage.differences()) == len(KINDS)
    stage.rounds.round()
    stage.rounds.round()
    assert stage.differences() == []
    assert {lines[-1]["state"] for lines in stage.histories().values()} == {"verified"}


def test_a_table_that_refuses_writes_is_asked_once_a_batch_and_has_one_finding_for_all(
    stage: Stage,
) -> None:
    failing = stage.fail("tables", "apply", Fate.REFUSED, times=3)
    for asked in (1, 2, 3):
        stage.rounds.round()
        assert failing.calls == asked
        assert stage.rounds.findings(stage.slots) == {}
        (parked,) = stage.rounds.findings([WHOLE_TABLE]).values()
        assert (parked.kind, parked.state) == (Kind.TABLE_REFUSES, State.REPORTED)
        assert parked.sentence.startswith(
            "table messageidtable refuses writes: no right to apply; "
        )
    assert len(stage.differences()) == len(KINDS)
    stage.rounds.round()
    assert stage.rounds.findings([WHOLE_TABLE]) == {}
    stage.rounds.look_again_at(stage.slots)  # as their time comes
    stage.rounds.round()
    stage.rounds.round()
    assert stage.differences() == []
    assert [line["state"] for line in stage.rounds.log_of(WHOLE_TABLE)] == ["reported", "healed"]
    for lines in stage.histories().values():
        assert lines[-1]["state"] == "verified"
        assert lines[-1]["attempts"] == 1
