"""Our own keyspace that was truncated, dropped or restored: an empty answer is not believed."""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import Offsets
from checkpoints.losses import Loss
from checkpoints.pauses import Resumed
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA
from reconcilers.limits.gate import Admission
from reconcilers.limits.generation import (
    GENERATIONS,
    GUARDS,
    OWNER,
    Generations,
    doubt,
    next_of,
    note_of,
    noted,
)
from reconcilers.limits.pause import PILOT, Pause
from reconcilers.limits.pilot import Pilot
from reconcilers.limits.write_target import ALL, EVERYTHING, correction_of, repair_of
from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.model import Kind, Micros
from reconcilers.words.waiting import Wait, Waiting
from streaming.canary.memory_watch import MemoryReport, MemoryWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline import repair_task
from streaming.pipeline.growing_keyspace import GROWS_EVERY, GrowingKeyspace
from streaming.pipeline.pause_report import PAUSES, PauseReport
from streaming.steps.own_keyspace import OwnKeyspace
from streaming.steps.pauses import OLDEST, PauseWatch
from tests.builders.canaries import CapturedAs
from tests.builders.indexes import LISTS
from tests.builders.rows import NOW, SECOND
from tests.fakes.checkpoints.generations import MemoryGenerations
from tests.fakes.checkpoints.losses import MemoryLosses
from tests.fakes.checkpoints.memory import MemoryLineage
from tests.fakes.checkpoints.pauses import MemoryPauses

PAUSE = Pause(ALL, NOW, "alice", "a look")
MINUTE = 60 * SECOND


@dataclass
class Place:
    """Our own keyspace, and one process that writes; ``seconds`` only go up."""

    store: MemoryGenerations = field(default_factory=MemoryGenerations)
    pauses: MemoryPauses = field(default_factory=MemoryPauses)
    seconds: float = 0.0
    only_pilot: bool = False
    keyspace: OwnKeyspace = field(init=False)
    watch: PauseWatch = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self, outside: Micros | None = None) -> None:
        """A process starts, and finds this in Kafka."""
        self.keyspace = OwnKeyspace(self.store)
        self.watch = PauseWatch(
            self.pauses,
            lambda: NOW,
            lambda: self.seconds,
            keyspace=self.keyspace,
            only_pilot=self.only_pilot,
        )
        self.keyspace.begin(outside, NOW)

    def why(self) -> Waiting | None:
        """Why nothing may be written, asked anew."""
        self.seconds += OLDEST + 0.01
        return self.watch.why(EVERYTHING)

    def truncate(self, table: str) -> None:
        self.store.held[table] = None
        if table == "pauses":
            self.pauses._all.clear()


# --- what is noticed -----------------------------------------------------------------------------


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.mark.parametrize("table", GENERATIONS)
def test_a_table_that_was_truncated_while_the_stream_runs_holds_everything(
    place: Place, table: str
) -> None:
    place.pauses.begin(PAUSE)
    assert str(place.why()) == "paused by alice: a look"
    place.truncate(table)
    why = place.why()
    assert why is not None
    assert f"our keyspace is not as it was left: table {table} has no generation" in str(why)


def test_without_a_guard_an_empty_answer_would_mean_go(place: Place) -> None:
    place.pauses.begin(PAUSE)
    place.truncate("pauses")
    place.watch.keyspace = None
    assert place.why() is None


@pytest.mark.parametrize("tables", [GENERATIONS, ("pauses",), ("holds", "breakers"), (OWNER,)])
def test_what_was_restored_from_an_older_copy_holds_everything(
    place: Place, tables: tuple[str, ...]
) -> None:
    copy = dict(place.store.held)
    place.keyspace.grow(NOW + MINUTE)
    place.store.held.update({table: copy[table] for table in tables})
    assert "is a copy of 2027-01-15T08:00:00+00:00, and was written to until" in str(place.why())


@pytest.mark.parametrize("restored", ["truncated", "older"])
def test_between_two_starts_the_copy_in_kafka_tells(place: Place, restored: str) -> None:
    copy = dict(place.store.held)
    place.keyspace.grow(NOW + MINUTE)
    outside = place.keyspace.newest
    place.store.held.update(copy if restored == "older" else dict.fromkeys(GENERATIONS))
    place.start(outside)
    assert place.why() is not None
    held = dict(place.store.held)
    place.keyspace.grow(NOW + 2 * MINUTE)
    assert place.store.held == held, "nothing heals it but a person"


@pytest.mark.parametrize(
    "lost",
    [
        *((table,) for table in GUARDS),
        (OWNER, "pauses"),
        (OWNER, "holds"),
        (OWNER, "pauses", "breakers"),
    ],
    ids=" and ".join,
)
def test_a_keyspace_that_is_lost_in_part_is_no_new_one_though_kafka_has_forgotten(
    place: Place,
    lost: tuple[str, ...],
) -> None:
    for table in lost:
        place.truncate(table)
    place.start(outside=None)
    assert place.why() is not None
    assert {each for each in GENERATIONS if place.store.held[each] is None} == set(lost)


def test_a_first_start_needs_nobody(place: Place) -> None:
    assert place.store.held == dict.fromkeys(GENERATIONS, NOW)
    assert place.why() is None
    place.start(outside=NOW)
    assert place.why() is None


@pytest.mark.parametrize("tables", range(len(GENERATIONS)))
def test_a_first_start_that_was_killed_midway_is_finished_by_the_next(tables: int) -> None:
    store = MemoryGenerations()
    store.held.update(dict.fromkeys((*GUARDS, OWNER)[:tables], NOW - SECOND))
    assert Place(store).why() is None


def test_another_process_that_raises_it_is_no_doubt(place: Place) -> None:
    other = OwnKeyspace(place.store)
    other.begin(NOW, NOW)
    assert place.why() is None
    other.grow(NOW + MINUTE)
    assert place.why() is None
    assert place.keyspace.newest == NOW + MINUTE


def test_an_answer_that_is_on_its_way_while_another_thread_raises_it_is_no_doubt() -> None:
    class Slow(MemoryGenerations):
        def read(self) -> Generations:
            found = super().read()
            self.held = dict.fromkeys(GENERATIONS, NOW + MINUTE)
            here.keyspace.expect(NOW + MINUTE)
            return found

    here = Place()
    here.keyspace.store = Slow(NOW)
    assert here.why() is None
    assert here.keyspace.newest == NOW + MINUTE


def test_a_table_that_is_truncated_while_it_is_raised_gets_no_generation(place: Place) -> None:
    found = place.store.read()
    place.truncate("pauses")
    assert not place.store.replace(found, NOW + MINUTE)
    assert place.why() is not None


@given(
    st.lists(st.sampled_from(["raise", "copy", "restore", "truncate", "start"]), max_size=20),
    st.data(),
)
def test_whatever_happens_what_is_older_or_empty_is_noticed(
    steps: list[str], data: st.DataObject
) -> None:
    """In the stream that runs, and in the next one, which finds what the last has left in Kafka."""
    place, clock = Place(), itertools.count(NOW + 1)
    copies: list[dict[str, Micros | None]] = [dict(place.store.held)]
    for step in steps:
        if step == "raise":
            place.keyspace.grow(next(clock))
        elif step == "copy":
            copies.append(dict(place.store.held))
        elif step == "start":
            place.start(place.keyspace.newest)
        else:
            tables = data.draw(st.sets(st.sampled_from(GENERATIONS), min_size=1))
            empty: dict[str, Micros | None] = dict.fromkeys(GENERATIONS)
            to = data.draw(st.sampled_from(copies)) if step == "restore" else empty
            place.store.held.update({table: to[table] for table in tables})
        right = place.store.held == dict.fromkeys(GENERATIONS, place.keyspace.newest)
        assert (place.why() is None) == right


# --- what is written to Kafka, and grows ----------------------------------------------------------


@dataclass
class Commits:
    """What a stream commits."""

    place: Place = field(default_factory=Place)
    now: Micros = NOW
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.growing = GrowingKeyspace(
            self.place.keyspace, self._committed, lambda: self.now, lambda: self.seconds
        )

    def _committed(self, _offsets: Offsets, note: str) -> None:
        self.notes.append(note)

    def later(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)
        self.seconds += seconds
        self.growing.commit({})


def test_it_grows_at_the_start_and_once_a_minute_and_stands_beside_the_offsets() -> None:
    commits = Commits()
    for _ in range(2):
        commits.later(1)
    commits.later(GROWS_EVERY)
    grown = [NOW + SECOND, NOW + SECOND, NOW + 62 * SECOND]
    assert [noted(note) for note in commits.notes] == grown
    assert set(commits.place.store.held.values()) == {grown[-1]}


def test_a_keyspace_in_doubt_does_not_grow_and_kafka_keeps_what_it_was() -> None:
    commits = Commits()
    commits.later(1)
    commits.place.truncate("holds")
    commits.later(2 * GROWS_EVERY)
    assert len(set(commits.notes)) == 1
    assert commits.place.store.held["holds"] is None


@pytest.mark.parametrize("failed", [Unreachable("no host answered"), Refused("no such table")])
def test_what_is_settled_is_committed_though_it_cannot_grow(failed: Exception) -> None:
    class Failing(MemoryGenerations):
        def read(self) -> Generations:
            raise failed

    commits = Commits()
    commits.place.keyspace.store = Failing()
    commits.later(1)
    assert len(commits.notes) == 1


def test_it_never_goes_down_whatever_the_clock_says() -> None:
    found = dict.fromkeys(GENERATIONS, NOW)
    assert next_of(found, None, NOW - MINUTE) == NOW + 1
    assert next_of(found, NOW + MINUTE, NOW) == NOW + MINUTE + 1
    assert next_of(found, NOW, NOW + SECOND) == NOW + SECOND


@given(st.one_of(st.none(), st.integers(min_value=0, max_value=2**62)))
def test_a_note_is_read_as_it_was_written(generation: int | None) -> None:
    assert noted(note_of(generation)) == generation


@pytest.mark.parametrize("note", ["", "17", "generation=", "generation=x", "my generation=17"])
def test_what_another_tool_has_noted_is_no_generation(note: str) -> None:
    assert noted(note) is None


def test_a_keyspace_that_no_stream_has_written_to_is_in_no_doubt() -> None:
    assert doubt(dict.fromkeys(GENERATIONS), None) is None
    assert doubt(dict.fromkeys(GENERATIONS), NOW) is not None


# --- every process -------------------------------------------------------------------------------


def test_a_worker_believes_nothing_older_than_what_the_driver_has_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = Place(MemoryGenerations(NOW))
    worker.keyspace.newest = None  # a process that has read nothing yet
    clocks = SimpleNamespace(measure_if_due=lambda: None, trouble=lambda: None, moved=lambda: None)
    ours = SimpleNamespace(clocks=clocks, pauses=worker.watch)
    job = SimpleNamespace(connections=lambda: ours)
    permit = repair_task._permit(job, Admission(generation=NOW + MINUTE), lambda: None)  # type: ignore[arg-type]
    target = repair_of(LISTS, Kind.MISSING_ROW)
    assert "is a copy of" in str(permit.pauses(target))


def test_counters_are_held_like_rows(place: Place) -> None:
    place.truncate("breakers")
    place.seconds += 2
    assert "table breakers has no generation" in str(place.watch.why(correction_of(CURRENT_QUOTA)))


# --- what is told, and memory --------------------------------------------------------------------


@dataclass
class Driver:
    """The driver's report over a place, with memory that began a minute ago."""

    place: Place = field(default_factory=Place)
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    losses: MemoryLosses = field(default_factory=MemoryLosses)
    seconds: int = 0

    def __post_init__(self) -> None:
        memory = MemoryWatch(
            *(self.lineage, self.losses, CapturedAs("imapuidtable=1@5"), self.clock),
            MemoryReport(self.metrics),
        )
        self.lineage.watch_from(NOW - MINUTE, "imapuidtable=1@5")
        self.report = PauseReport(self.place.watch, self.metrics, memory.doubted)

    def clock(self) -> Micros:
        """A second later each time."""
        self.seconds += 1
        return NOW + self.seconds * SECOND

    def shown(self, reason: str) -> float | None:
        read = self.metrics.registry.get_sample_value
        return read("reconciler_repairs_paused", {"reason": reason})


@pytest.fixture
def driver() -> Driver:
    made = Driver()
    assert not made.report.is_over()
    return made


def test_it_is_told_once_by_the_log_and_a_metric_and_memory_ends(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.place.pauses.begin(PAUSE)
    driver.report.is_over()
    driver.place.truncate("pauses")
    for _ in range(3):
        assert not driver.report.is_over()
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert [each.partition(":")[0] for each in told] == [
        "repairs of all are paused by the reconciler itself",
        "changes may have been missed",
    ]
    assert "`reconcile resume --own-keyspace`" in told[0]
    assert (driver.shown("own_keyspace"), driver.shown("pause")) == (1, 0)
    assert driver.lineage.watching() is None
    [loss] = driver.losses.since(0)
    assert isinstance(loss, Loss)
    assert "table pauses has no generation any more" in loss.why


def test_a_person_lets_it_go_on(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    driver.place.truncate("pauses")
    driver.report.is_over()
    found = driver.place.store.read()
    driver.place.store.replace(found, next_of(found, NOW, NOW + MINUTE))
    assert driver.report.is_over()
    assert driver.shown("own_keyspace") == 0
    assert "a person has said that our keyspace is right" in caplog.records[-1].getMessage()


def test_another_start_while_it_lasts_records_no_loss_again(driver: Driver) -> None:
    driver.place.truncate("holds")
    driver.report.is_over()
    for _ in range(3):
        PauseReport(driver.place.watch, driver.metrics, driver.report.doubted).is_over()
    assert len(driver.losses.since(0)) == 1


def test_memory_that_has_begun_since_is_left_as_it_is(driver: Driver) -> None:
    driver.place.truncate("holds")
    driver.lineage.watch_from(NOW + SECOND, "imapuidtable=1@5")
    driver.report.is_over()
    assert driver.lineage.watching() is not None


def test_a_second_table_is_told_as_well_and_nothing_goes_on(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    for table in ("pauses", "holds"):
        driver.place.truncate(table)
        assert not driver.report.is_over()
    assert driver.shown("own_keyspace") == 1
    assert not [each for each in caplog.records if "go on" in each.getMessage()]


def test_a_finding_that_waits_for_it_is_looked_at_when_it_is_over(place: Place) -> None:
    place.truncate("owner")
    why = place.why()
    assert why is not None
    assert why.wait is Wait.OWN_KEYSPACE
    assert why.wait in PAUSES


# --- only with a pilot ---------------------------------------------------------------------------


def test_without_a_pilot_nothing_is_written_and_with_one_what_it_names() -> None:
    place = Place(only_pilot=True)
    told = "paused by the setting repair.only_pilot: no pilot runs"
    no_pilot = Waiting(Wait.PILOT, told)
    quota = correction_of(CURRENT_QUOTA, "#private&bob")
    assert (place.why(), place.watch.why(quota)) == (no_pilot, no_pilot)
    pilot = Pause(PILOT, NOW, "carol", "a try", pilot=Pilot(users=frozenset({"bob"})))
    place.pauses.begin(pilot)
    assert place.why() is None
    assert place.watch.why(quota) is None
    assert "outside the pilot of carol" in str(
        place.watch.why(correction_of(CURRENT_QUOTA, "#private&ann"))
    )
    place.pauses.end(pilot, Resumed(NOW, "carol", "done"))
    assert place.why() == no_pilot


def test_what_waited_for_a_pilot_is_looked_at_when_one_stands(
    caplog: pytest.LogCaptureFixture,
) -> None:
    place, metrics = Place(only_pilot=True), Metrics(CollectorRegistry())
    report = PauseReport(place.watch, metrics)
    read = metrics.registry.get_sample_value
    assert not report.is_over()
    assert read("reconciler_repairs_paused", {"reason": "pilot"}) == 1
    place.pauses.begin(Pause(PILOT, NOW, "carol", "a try", pilot=Pilot(users=frozenset({"bob"}))))
    assert report.is_over()
    assert "repairs of all go on: a pilot stands" in [each.getMessage() for each in caplog.records]
