"""The slices of a batch, and what the driver does with each, in which order."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import Row

from checkpoints.bookmarks import Place, nested
from checkpoints.clock import to_micros
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Micros, Slot, Suspect, Wake
from reconcilers.words.waiting import Wait, Waiting
from streaming.commands.wiring import workers
from streaming.pipeline import query as query_module
from streaming.pipeline import slice_work as module
from streaming.pipeline.failures import ALONE_FOR, TRIES_ALONE, SliceFailures
from streaming.pipeline.query import EARLIEST, FamilyQuery
from streaming.pipeline.ranges import Ranges
from streaming.pipeline.slice_work import GIVEN_UP, SliceWork
from streaming.pipeline.slices import Closed, Slice
from streaming.pipeline.spark_errors import OURS
from streaming.pipeline.window import LONG_BATCH, how_often, wait_for
from streaming.pipeline.worker import BatchLook
from streaming.settings import KafkaSettings, Settings, StreamSettings
from streaming.steps.outcome import Outcome, Repaired
from tests.builders.found import suspect_at
from tests.builders.rows import FAMILY, MESSAGE_ID, SLOT
from tests.fakes.checkpoints.progress import MemoryFailingSlices

LOOK = BatchLook([suspect_at(SLOT, None, [MESSAGE_ID])], examined=1)
ADMITTED = Admission(repairs_wait=Waiting(Wait.PAUSE, "not now"))
OUTCOMES = [Outcome(SLOT, Action.NOTHING, None)]
DUE = [Wake(SLOT.key, None, looked_again=True)]
TOPIC = "james.mail.imapuidtable"
ZERO, ONE = (TOPIC, 0), (TOPIC, 1)
SETTLED: dict[Place, int] = {ZERO: 10, ONE: 0}
MOST = 100


@dataclass
class Decisions:
    """Takes down what it is told."""

    told: list[tuple[Any, ...]] = field(default_factory=list)
    fails: int = 0
    silent: bool = False
    idle: BatchLook | None = None

    def admit(self, look: BatchLook, piece: Slice) -> Admission:
        self.told.append(("admit", look, piece.done_before))
        return ADMITTED

    def canaries_alone(self, piece: Slice) -> BatchLook | None:
        return self.idle

    def unreadable(self) -> frozenset[Slot]:
        return frozenset()

    def recall(self) -> None:
        if self.silent:
            raise Unreachable("no host answered")

    def record_outcomes(self, repaired: Repaired) -> None:
        self.told.append(("outcomes", repaired.outcomes))

    def later_looks(self, now: Micros) -> list[Wake]:
        self.told.append(("later",))
        return DUE

    def ended(self, look: BatchLook, piece: Slice) -> None:
        if self.fails:
            self.fails -= 1
            raise Unreachable("no host answered")
        self.told.append(("ended", look.examined, piece.ranges, piece.done_before))


@dataclass
class Windows:
    """What Spark lets out."""

    rows: Sequence[Row]

    def collect(self) -> Sequence[Row]:
        return self.rows


def closed(until: int, place: Place | None = None, last: int | None = None) -> Row:
    topic, partition = place or (None, None)
    return Row(until=until, topic=topic, partition=partition, last=last)


@dataclass(slots=True)
class Work(SliceWork):
    """Without Spark: its passes take down what they are given."""

    told: list[tuple[Any, ...]] = field(default_factory=list)

    def _look(self, piece: Slice) -> BatchLook:
        self.told.append(("look", piece.ranges))
        return LOOK

    def _confirm_and_repair(
        self, suspects: list[Suspect], admission: Admission, batch: str
    ) -> Repaired:
        self.told.append(("repair", suspects, admission, batch))
        return Repaired(OUTCOMES)

    def publish(self, wakes: Iterable[Wake]) -> None:
        self.told.append(("publish", wakes))


@dataclass(slots=True)
class Query(FamilyQuery):
    """Without Spark: a start is taken down."""

    work: Work

    def start(self) -> None:
        self.work.told.append(("start",))

    def batch(self, *rows: Row) -> list[tuple[Any, ...]]:
        """What is told of a batch."""
        self.work.told.clear()
        self._batch(Windows(rows), 7)  # type: ignore[arg-type]
        return self.work.told


NOWHERE: Any = None


def work_with(decisions: Decisions, ranges: Ranges, most: int = MOST, kind: type = Work) -> Work:
    """The work of a family whose slices have at most so many records."""
    settings = Settings(kafka=KafkaSettings(max_offsets_per_batch=most))
    job = workers.job(settings, FAMILY, "suspects")
    made: Work = kind(NOWHERE, job, decisions, ranges, NOWHERE)
    made.told = decisions.told
    return made


def a_query() -> Query:
    """One that has begun."""
    ranges = Ranges(SliceFailures(MemoryFailingSlices(), "s"))
    made = Query(work_with(Decisions(), ranges), NOWHERE, lambda topic: [0, 1, 2])
    made.begin(SETTLED)
    return made


@pytest.fixture
def query() -> Query:
    return a_query()


def name_of(query: Query) -> str:
    return query.work.ranges.nothing_left().name


def test_a_slice_is_admitted_before_it_is_repaired_and_settled_at_its_end(query: Query) -> None:
    name = name_of(query)
    assert query.batch(closed(500, ZERO, 19), closed(500)) == [
        ("later",),
        ("publish", DUE),
        ("look", {ZERO: (10, 20)}),
        ("admit", LOOK, 500),
        ("repair", LOOK.suspects, ADMITTED, name),
        ("outcomes", OUTCOMES),
        ("ended", LOOK.examined, {ZERO: (10, 20)}, 500),
    ]


def test_a_slice_of_canaries_alone_needs_no_worker_and_is_settled_like_any(query: Query) -> None:
    assert isinstance(query.work.decisions, Decisions)
    idle = query.work.decisions.idle = BatchLook()
    told = query.batch(closed(500, ZERO, 19))
    assert not [each for each in told if each[0] == "look"]
    assert ("admit", idle, 500) in told
    assert told[-1] == ("ended", 0, {ZERO: (10, 20)}, 500)


def test_each_slice_of_a_batch_is_admitted_for_itself(query: Query) -> None:
    told = query.batch(closed(500, ZERO, 99), closed(600, ONE, 89))
    admitted = [each for each in told if each[0] in {"admit", "ended"}]
    assert admitted == [
        ("admit", LOOK, 500),
        ("ended", LOOK.examined, {ZERO: (10, 100)}, 500),
        ("admit", LOOK, 600),
        ("ended", LOOK.examined, {ONE: (0, 90)}, 600),
    ]
    assert len({each[3] for each in told if each[0] == "repair"}) == 2


def test_where_nothing_has_closed_nothing_is_read_and_what_is_due_is_published(
    query: Query,
) -> None:
    first = [("later",), ("publish", DUE)]
    assert query.batch(closed(700)) == [*first, ("ended", 0, {}, 700)]
    assert query.batch() == [*first, ("ended", 0, {}, 700)]


def test_a_slice_that_failed_is_done_again_by_the_next_query_without_waiting(query: Query) -> None:
    assert isinstance(query.work.decisions, Decisions)
    query.work.decisions.fails = 1
    name = name_of(query)
    with pytest.raises(Unreachable):
        query.batch(closed(500, ZERO, 99), closed(600, ONE, 89))
    assert starting(query) == {"0": 100, "1": 90, "2": EARLIEST}
    told = query.batch(closed(650, ONE, 94))
    assert [each[1] for each in told if each[0] == "look"] == [{ZERO: (10, 100)}, {ONE: (0, 95)}]
    assert next(each[3] for each in told if each[0] == "repair") == name
    assert query.batch()[-1] == ("ended", 0, {}, 650)


def test_what_is_settled_is_not_looked_at_when_it_comes_again(query: Query) -> None:
    query.batch(closed(500, ZERO, 19))
    assert ("look", {ZERO: (20, 25)}) in query.batch(closed(600, ZERO, 24))
    assert "look" not in {each[0] for each in query.batch(closed(500, ZERO, 19))}


def starting(query: Query) -> Any:
    return json.loads(query._starting_offsets(nested(query.work.ranges.restart())))[TOPIC]


def test_a_fresh_query_names_every_partition(query: Query) -> None:
    assert starting(query) == {"0": 10, "1": 0, "2": EARLIEST}


def test_what_has_waited_and_did_not_come_out_is_looked_at_by_the_next_batch(query: Query) -> None:
    assert not query.release({TOPIC: {0: 10, 1: 0}})
    query.batch(closed(500, ONE, 4))
    assert not query.release({TOPIC: {0: 10, 1: 5}})
    assert query.release({TOPIC: {0: 12, 1: 5}})
    assert ("look", {ZERO: (10, 12)}) in query.batch(closed(600))
    assert query.work.ranges.settled == {ZERO: 12, ONE: 5}, "whatever was there, it is settled"
    assert "look" not in {each[0] for each in query.batch(closed(700))}


# --- what comes out less than the delay after it was read


HALF_A_SECOND = StreamSettings(delay=5, window=1, trigger=0.5)


@pytest.mark.parametrize(
    ("since_read", "seconds"),
    [(5.1, 0), (5.0, 0), (4.99, 0.01), (4.0, 1.0), (3.5, 1.0), (-3600.0, 1.0)],
    ids=["late", "in time", "early", "a long batch early", "set back", "set back by an hour"],
)
def test_a_batch_waits_until_its_windows_have_waited_but_no_longer_than_they_come_early(
    since_read: float, seconds: float
) -> None:
    now = 1_000_000_000_000
    older, newest = (Closed(now - to_micros(since_read) - age) for age in (1_000_000, 0))
    assert wait_for([newest, older], HALF_A_SECOND, now) == pytest.approx(seconds)
    assert wait_for([], HALF_A_SECOND, now) == 0


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        (StreamSettings(delay=20, window=5), 5),
        (StreamSettings(delay=20, window=5, trigger=0.1), LONG_BATCH),
        (StreamSettings(delay=1, window=1), 0.5),
    ],
    ids=["a trigger", "a batch, where that is longer", "half the delay at most"],
)
def test_windows_come_early_by_what_lies_between_two_batches(
    settings: StreamSettings, seconds: float
) -> None:
    now = 1_000_000_000_000
    assert wait_for([Closed(now)], settings, now) == seconds


def test_nothing_is_looked_at_before_that(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "wait_for", lambda windows, _settings, _now: len(windows))
    monkeypatch.setattr("time.sleep", lambda seconds: query.work.told.append(("wait", seconds)))
    told = [each[0] for each in query.batch(closed(500, ZERO, 19), closed(500))]
    assert ("wait", 2) in query.work.told
    assert told.index("later") < told.index("wait") < told.index("look")


# --- one record that fails each time


def test_a_slice_that_a_stop_has_interrupted_has_not_failed(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_work: Work, _piece: Slice) -> BatchLook:
        query.work.stopping.set()
        raise PythonException("Job 7 cancelled because the query was stopped")

    query.work.ranges.failures.done(SETTLED)
    monkeypatch.setattr(Work, "_look", interrupted)
    with pytest.raises(PythonException):
        query.batch(closed(500, ZERO, 10))
    assert not query.work.ranges.failures.suspected


TIMED_OUT = "An exception was thrown from the Python worker: no answer came in time"


@dataclass
class Failing:
    """A query whose look at one record failed as often, and for as long, as it may."""

    query: Query
    monkeypatch: pytest.MonkeyPatch
    letters: list[Any] = field(default_factory=list)
    now: Micros = 0

    def __post_init__(self) -> None:
        keep = self.letters.extend
        self.monkeypatch.setattr(module, "now_micros", lambda: self.now)
        self.monkeypatch.setattr("time.sleep", lambda _seconds: None)
        self.monkeypatch.setattr(
            type(self.query.work.job), "keep_dead_letters", lambda _, letters: keep(letters)
        )
        self.says(TIMED_OUT)
        for _ in range(TRIES_ALONE):
            with pytest.raises(PythonException):
                self.query.batch(closed(500, ZERO, 10))
            self.now += ALONE_FOR

    def says(self, error: str) -> None:
        """What each look ends with from now on."""

        def fails(_work: Work, _piece: Slice) -> BatchLook:
            raise PythonException(error)

        self.monkeypatch.setattr(Work, "_look", fails)

    @property
    def settled(self) -> int:
        return self.query.work.ranges.settled[ZERO]


@pytest.fixture
def failing(query: Query, monkeypatch: pytest.MonkeyPatch) -> Failing:
    return Failing(query, monkeypatch)


@pytest.mark.parametrize(
    "error",
    [
        TIMED_OUT,
        "org.apache.spark.api.python.PythonException: Traceback",
        "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
    ],
)
def test_it_becomes_a_dead_letter_and_the_next_is_looked_at(failing: Failing, error: str) -> None:
    failing.says(error)
    told = failing.query.batch()
    assert ("ended", 0, {ZERO: (10, 11)}, 500) in told
    place = {"topic": TOPIC, "partition": 0, "offset": 10}
    assert failing.letters == [{**place, "reason": GIVEN_UP, "raw": None}]
    assert failing.settled == 11


def test_after_an_outage_it_is_looked_at_before_it_would_be_given_up(failing: Failing) -> None:
    failing.monkeypatch.setattr(Work, "_look", lambda _work, _piece: LOOK)
    told = failing.query.batch()
    assert ("ended", LOOK.examined, {ZERO: (10, 11)}, 500) in told
    assert (failing.letters, failing.settled) == ([], 11)


@pytest.mark.parametrize(
    "error",
    [
        "Job 7 cancelled because the query was stopped",
        f"PythonException\n{OURS}.Overloaded: reading the truth: Unavailable: code=1000",
        f"PythonException\n{OURS}.Refused: reading the truth: Unauthorized: code=2100",
    ],
)
def test_what_is_no_error_of_a_look_gives_nothing_up(failing: Failing, error: str) -> None:
    failing.says(error)
    with pytest.raises(PythonException, match=r"Job 7|Unavailable|Unauthorized"):
        failing.query.batch()
    assert (failing.letters, failing.settled) == ([], 10)


def test_while_cassandra_does_not_answer_nothing_is_given_up(failing: Failing) -> None:
    assert isinstance(failing.query.work.decisions, Decisions)
    failing.query.work.decisions.silent = True
    with pytest.raises(Unreachable, match="no host"):
        failing.query.batch()
    assert (failing.letters, failing.settled) == ([], 10)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"window": 5}, "5000 milliseconds"),
        ({"window": 5, "trigger": 0.5}, "500 milliseconds"),
        ({"window": 5, "trigger": 0.0001}, "1 milliseconds"),
    ],
)
def test_a_batch_starts_every_window_unless_it_is_said(
    settings: dict[str, float], told: str
) -> None:
    assert how_often(StreamSettings.model_validate(settings)) == told
