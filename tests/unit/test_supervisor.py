"""When a query starts from its checkpoint, when afresh, and where; what each death leads to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from checkpoints import fingerprint
from checkpoints.bookmarks import Bookmark, Offsets
from checkpoints.clock import now_micros
from reconcilers.errors import AlreadyRunning, EventsLost, Unreachable
from reconcilers.model import Micros, Wake
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.lag import LagWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.starting import COMPARE, StartingPoint
from streaming.pipeline.supervisor import BAD_STARTS, Measurements, QuerySupervisor, backoff
from tests.builders.rows import DELAY, SECOND

TOPIC = "james.mail.imapuidtable"
MADE_WITH = fingerprint.Fingerprint((TOPIC,), ("message",), 2, "james")
WINDOW: Micros = SECOND
HELD = Wake((None, 7), None, looked_again=True)


@dataclass
class Query:
    """A query that dies as it is told: at each look at it, of the next of ``deaths``.

    ``batches`` end before the look of that number.
    """

    checkpoint: Path
    name: str = "message"
    deaths: list[str | None] = field(default_factory=list)
    batches: dict[int, dict[str, Any]] = field(default_factory=dict)
    started: list[Offsets | str] = field(default_factory=list)
    published: list[Wake] = field(default_factory=list)
    stopped: int = 0
    looks: int = 0
    why: str = ""

    def publish(self, wakes: Iterable[Wake]) -> None:
        self.published += wakes

    @property
    def alive(self) -> bool:
        self.looks += 1
        self.why = (self.deaths.pop(0) if self.deaths else None) or ""
        return not self.why

    def start(self) -> None:
        self.started.append("checkpoint")

    def start_fresh(self, offsets: Offsets) -> None:
        self.started.append(offsets)

    def stop(self) -> None:
        self.stopped += 1

    def progress(self) -> Iterator[dict[str, Any]]:
        if self.looks in self.batches:
            yield self.batches.pop(self.looks)

    def failure(self) -> str:
        return self.why

    def blames_checkpoint(self) -> bool:
        return self.why == STATE

    def lost_events(self) -> bool:
        return self.why == LOST


class Stop(Event):
    """Ends a run after so many looks at the query; ``waited`` are the seconds of each wait."""

    def __init__(self, query: Query, looks: int) -> None:
        super().__init__()
        self.query, self.looks = query, looks
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return self.query.looks >= self.looks


STATE, LOST, OUTAGE = "the state store is corrupt", "KAFKA_DATA_LOSS", "no host answered"


@dataclass
class Decisions:
    """What batches remember: how often it was read anew."""

    recalled: int = 0
    lease_lost: bool = False

    def start(self) -> list[Wake]:
        return [HELD]

    def recall(self) -> None:
        self.recalled += 1

    def check_lease(self) -> None:
        if self.lease_lost:
            raise AlreadyRunning("another live stream holds the lease")


@dataclass
class Kafka:
    """One topic of one partition, and nodes whose clocks are well."""

    beginning: int = 0
    measured: int = 0

    def beginning_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        return {each: {0: self.beginning} for each in topics}

    def end_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        return {each: {0: 100} for each in topics}

    def members(self) -> list[str]:
        return []

    def clocks(self) -> dict[str, float]:
        self.measured += 1
        return {}


@dataclass
class Bench:
    """A supervisor with everything around it."""

    folder: Path
    kafka: Kafka = field(default_factory=Kafka)
    decisions: Decisions = field(default_factory=Decisions)
    bookmarks: list[Bookmark] = field(default_factory=list)
    accept_loss: bool = False
    lost: int = 0

    def __post_init__(self) -> None:
        self.query = Query(self.folder / "repair")
        self.metrics = Metrics(CollectorRegistry())

    def lose(self) -> None:
        self.lost += 1

    def run(self, looks: int = 1, deaths: Sequence[str | None] = ()) -> Stop:
        """Start, and look at the query so many times."""
        self.query.deaths = list(deaths)
        stop = Stop(self.query, self.query.looks + looks)
        clocks = ClockWatch(self.kafka, 45.0, self.metrics)
        lag = LagWatch(self.kafka, (TOPIC,), self.metrics)
        QuerySupervisor(
            query=self.query,
            decisions=self.decisions,
            starting=StartingPoint(
                self.kafka,
                (TOPIC,),
                WINDOW,
                bookmarks=lambda: self.bookmarks,
                events_lost=self.lose,
                accept_loss=self.accept_loss,
            ),
            measurements=Measurements(clocks, lag, dict),
            metrics=self.metrics,
            fingerprint=MADE_WITH,
            restart_backoff_max=60.0,
        ).run(stop)
        return stop

    # --- what was before

    def checkpoint(self, watermark: Micros, read: int = 40) -> None:
        """As Spark leaves one: its identity, and the plan of one batch."""
        offsets = self.query.checkpoint / "offsets"
        offsets.mkdir(parents=True)
        (self.query.checkpoint / "metadata").write_text('{"id":"7d1f"}')
        times = {"batchTimestampMs": watermark // 1000, "batchWatermarkMs": watermark // 1000}
        plan = ["v1", json.dumps(times), json.dumps({TOPIC: {"0": read}})]
        (offsets / "3").write_text("\n".join(plan))

    def bookmark(self, at: int) -> None:
        """Of a batch that has not come out: a fresh checkpoint begins where it began."""
        start, end = {TOPIC: {0: at}}, {TOPIC: {0: at + 10}}
        self.bookmarks.append(Bookmark("message", "7d1f", 0, 10 * DELAY, 9 * DELAY, start, end))

    @property
    def set_aside(self) -> bool:
        return self.query.checkpoint.with_name("repair.set-aside").exists()

    def counted(self, metric: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"reconciler_{metric}", labels) or 0.0


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def past() -> Micros:
    return now_micros() - 10 * DELAY


def batch(dropped: int = 0) -> dict[str, Any]:
    rows = {"numRowsTotal": 3, "numRowsDroppedByWatermark": dropped}
    return {"durationMs": {"triggerExecution": 1500}, "stateOperators": [rows]}


# --- the first start


def test_without_anything_it_reads_from_the_beginning(bench: Bench) -> None:
    bench.run()
    assert bench.query.started == [{}]
    assert fingerprint._read(bench.query.checkpoint / fingerprint.FILE)["kafka_prefix"] == "james"
    assert bench.lost == 0


def test_what_was_held_is_published_before_anything_is_read(bench: Bench) -> None:
    bench.run()
    assert bench.query.published == [HELD]


def test_without_a_bookmark_what_kafka_no_longer_holds_is_not_known(bench: Bench) -> None:
    bench.kafka.beginning = 5
    bench.run()
    assert bench.query.started == [{}]
    assert bench.lost == 1


def test_without_a_checkpoint_it_begins_at_the_bookmark(bench: Bench) -> None:
    bench.bookmark(at=40)
    bench.run()
    assert bench.query.started == [{TOPIC: {0: 40}}]


def test_a_partition_that_kafka_holds_from_the_bookmark_on_is_read_from_its_beginning(
    bench: Bench,
) -> None:
    bench.bookmark(at=40)
    bench.kafka.beginning = 40
    bench.run()
    assert bench.query.started == [{}]


def test_it_goes_on_from_its_checkpoint(bench: Bench) -> None:
    bench.checkpoint(past())
    bench.bookmark(at=40)
    bench.run()
    assert bench.query.started == ["checkpoint"]
    assert not bench.set_aside


def test_a_checkpoint_that_spark_did_not_finish_is_set_aside(bench: Bench) -> None:
    bench.checkpoint(past())
    (bench.query.checkpoint / "metadata").unlink()
    bench.bookmark(at=40)
    bench.run()
    assert bench.query.started == [{TOPIC: {0: 40}}]
    assert bench.set_aside


@pytest.mark.parametrize(("ahead", "fresh"), [(-SECOND, False), (60 * SECOND, True)])
def test_a_clock_behind_the_watermark_gives_the_checkpoint_up(
    bench: Bench, ahead: Micros, fresh: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bench.checkpoint(now_micros() + ahead)
    bench.bookmark(at=40)
    bench.run()
    assert bench.query.started == [{TOPIC: {0: 40}} if fresh else "checkpoint"]
    assert bench.set_aside is fresh
    told = "its watermark is 60 s ahead of the clock"
    assert any(told in each.getMessage() for each in caplog.records) is fresh


# --- retention


@pytest.mark.parametrize("with_checkpoint", [True, False])
@pytest.mark.parametrize(("beginning", "lost"), [(40, False), (41, True)])
def test_records_that_kafka_dropped_before_they_were_read_end_the_start(
    bench: Bench, with_checkpoint: bool, beginning: int, lost: bool
) -> None:
    if with_checkpoint:
        bench.checkpoint(past(), read=40)
    bench.bookmark(at=40)
    bench.kafka.beginning = beginning
    if not lost:
        bench.run()
        return
    with pytest.raises(EventsLost, match=f"{TOPIC}/0 40–40; go on with --accept-loss") as told:
        bench.run()
    assert COMPARE in str(told.value)
    assert bench.query.started == []
    assert bench.lost == 0


@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_an_accepted_loss_is_remembered(bench: Bench, with_checkpoint: bool) -> None:
    if with_checkpoint:
        bench.checkpoint(past(), read=40)
    bench.bookmark(at=40)
    bench.kafka.beginning, bench.accept_loss = 41, True
    bench.run()
    assert bench.query.started == ["checkpoint" if with_checkpoint else {}]
    assert bench.lost == 1


# --- deaths


def test_a_query_that_died_goes_on_from_its_checkpoint(bench: Bench) -> None:
    bench.checkpoint(past())
    bench.run(looks=3, deaths=[None, OUTAGE, None])
    assert bench.query.started == ["checkpoint", "checkpoint"]
    assert bench.decisions.recalled == 1
    assert bench.counted("query_restarts_total", family="message") == 1


def test_deaths_in_a_row_are_waited_for_longer_each_time(bench: Bench) -> None:
    bench.checkpoint(past())
    stop = bench.run(looks=4, deaths=[OUTAGE] * 3)
    assert stop.waited == [1, 1, 1, 2, 1, 4, 1, 1]  # at each look a second; at each death longer


def test_the_pause_doubles_up_to_the_longest() -> None:
    assert [backoff(number, 60.0) for number in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_deaths_by_the_checkpoint_without_a_batch_between_condemn_it(bench: Bench) -> None:
    bench.checkpoint(past())
    bench.bookmark(at=40)
    bench.run(looks=BAD_STARTS, deaths=[STATE] * BAD_STARTS)
    assert bench.query.started == ["checkpoint", "checkpoint", {TOPIC: {0: 40}}]
    assert bench.set_aside


def test_one_death_by_the_checkpoint_does_not(bench: Bench) -> None:
    bench.checkpoint(past())
    bench.run(looks=BAD_STARTS - 1, deaths=[STATE] * (BAD_STARTS - 1))
    assert set(bench.query.started) == {"checkpoint"}
    assert not bench.set_aside


def test_a_batch_between_two_deaths_acquits_the_checkpoint(bench: Bench) -> None:
    bench.checkpoint(past())
    bench.query.batches = {1: batch()}
    bench.run(looks=2, deaths=[STATE] * 2)
    assert set(bench.query.started) == {"checkpoint"}


def test_deaths_by_the_servers_around_it_never_condemn_the_checkpoint(bench: Bench) -> None:
    bench.checkpoint(past())
    bench.run(looks=5, deaths=[OUTAGE] * 5)
    assert set(bench.query.started) == {"checkpoint"}


def test_a_condemned_checkpoint_has_its_deaths_counted_anew(bench: Bench) -> None:
    bench.checkpoint(past())
    bench.bookmark(at=40)
    bench.run(looks=3, deaths=[STATE] * 3)
    assert bench.query.started == ["checkpoint", "checkpoint", {TOPIC: {0: 40}}, "checkpoint"]


@pytest.mark.parametrize("accepted", [True, False])
def test_events_that_were_lost_while_it_ran_end_it_unless_that_is_accepted(
    bench: Bench, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.checkpoint(past())
    bench.bookmark(at=40)
    bench.accept_loss = accepted

    def drops() -> None:
        bench.kafka.beginning = 41

    monkeypatch.setattr(bench.decisions, "check_lease", drops)  # the first call after the death
    if not accepted:
        with pytest.raises(EventsLost):
            bench.run(deaths=[LOST])
        return
    bench.run(deaths=[LOST])
    assert bench.query.started == ["checkpoint", {}]
    assert bench.lost == 1


def test_a_lost_lease_ends_it_before_anything_is_restarted(bench: Bench) -> None:
    bench.checkpoint(past())
    bench.decisions.lease_lost = True
    with pytest.raises(AlreadyRunning):
        bench.run(deaths=[OUTAGE])
    assert bench.query.started == ["checkpoint"]


def test_while_nobody_answers_it_waits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable() -> None:
        raise Unreachable("no host answered")

    bench.checkpoint(past())
    monkeypatch.setattr(bench.decisions, "check_lease", unreachable)
    bench.run(looks=2, deaths=[OUTAGE, OUTAGE])
    assert bench.query.started == ["checkpoint"]
    assert bench.query.stopped == 1


# --- while it runs


def test_rows_that_the_watermark_dropped_give_the_checkpoint_up(bench: Bench) -> None:
    bench.checkpoint(past())
    bench.bookmark(at=40)
    bench.query.batches = {0: batch(dropped=2)}
    bench.run()
    assert bench.query.started == ["checkpoint", {TOPIC: {0: 40}}]
    assert bench.counted("rows_dropped_by_watermark_total") == 2


def test_each_batch_is_shown(bench: Bench) -> None:
    bench.query.batches = {0: batch()}
    bench.run()
    assert bench.counted("batch_duration_seconds") == 1.5
    assert bench.counted("state_rows") == 3


def test_clocks_and_lag_are_measured_now_and_then(bench: Bench) -> None:
    bench.run(looks=5)
    assert bench.kafka.measured == 1
    assert bench.counted("kafka_lag_records", topic=TOPIC, partition="0") == 100


def test_told_to_stop_it_stops_its_query(bench: Bench) -> None:
    bench.run()
    assert bench.query.stopped == 2  # before the fresh start, too
