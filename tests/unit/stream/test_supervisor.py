"""Where a query begins, when it begins anew, and what each death leads to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import Bookmark, KafkaIds, Offsets, Place, Positions
from reconcilers.capture.chain import Reached
from reconcilers.capture.frontier import Lane
from reconcilers.words.errors import AlreadyRunning, EndedItself, EventsLost
from reconcilers.words.model import Wake
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.lag import LagWatch
from streaming.monitoring.metrics import Metrics
from streaming.pipeline import supervisor
from streaming.pipeline.starting_point import OtherStream, StartingPoint
from streaming.pipeline.supervisor import (
    BATCHES_TO_CLOSE,
    BatchReport,
    Measurements,
    Overdue,
    QuerySupervisor,
    backoff,
)
from tests.builders.failing import unreachable

TOPIC = "james.mail.imapuidtable"
HERE: Place = (TOPIC, 0)
OTHERS = "suspects.of.the.other.mode"
AGAIN = "again"
OURS = KafkaIds("ours", {TOPIC: "one"})
HELD = Wake((None, 7), None, looked_again=True)


@dataclass
class Query:
    """A query that dies as it is told: at each look at it, of the next of ``deaths``.

    ``batches`` end before the look of that number.
    """

    name: str = "message"
    deaths: list[str | None] = field(default_factory=list)
    batches: dict[int, BatchReport] = field(default_factory=dict)
    started: list[Positions | str] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    published: list[Wake] = field(default_factory=list)
    on_stop: Callable[[], None] = lambda: None
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

    def begin(self, settled: Positions) -> None:
        self.started.append(settled)

    def start(self) -> None:
        self.started.append(AGAIN)

    def stop(self) -> None:
        self.on_stop()

    def end(self) -> None:
        self.stopped += 1

    def progress(self) -> Iterator[BatchReport]:
        if self.looks in self.batches:
            yield self.batches.pop(self.looks)

    def failure(self) -> str:
        return self.why

    def release(self, read: Offsets) -> bool:
        self.released.append(read[TOPIC][0])
        return True


class Stop(Event):
    """Ends a run after so many looks at the query; ``waited`` are the seconds of each wait."""

    def __init__(self, query: Query, looks: int) -> None:
        super().__init__()
        self.query, self.looks = query, looks
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return self.query.looks >= self.looks


LOST, OUTAGE = "KAFKA_DATA_LOSS", "no host answered"


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
    end: int = 100
    measured: int = 0
    known: KafkaIds = OURS
    others: dict[str, int] = field(default_factory=dict)
    more: dict[int, int] = field(default_factory=dict)
    markers_from: int = 10**9
    """From here on there are markers of transactions only."""

    def beginning_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        return {each: {0: self.beginning, **self.more} for each in topics}

    def configured(self, topics: Iterable[str], name: str) -> dict[str, str]:
        return {}

    def end_offsets(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        return {each: {0: self.others.get(each, self.end)} for each in topics}

    def ids(self, topics: Iterable[str]) -> KafkaIds:
        return self.known

    def missing(self, topics: Iterable[str]) -> list[str]:
        return [each for each in topics if each != TOPIC and each not in self.others]

    def holds_records(self, _place: Place, begin: int, end: int) -> bool:
        return begin < min(end, self.markers_from)

    def written_at(self, places: Positions) -> dict[Place, int]:
        return {}

    def members(self) -> list[str]:
        return []

    def clocks(self) -> dict[str, float]:
        self.measured += 1
        return {}


@dataclass
class Bench:
    """A supervisor with everything around it."""

    kafka: Kafka = field(default_factory=Kafka)
    decisions: Decisions = field(default_factory=Decisions)
    bookmark: Bookmark | None = None
    others: Bookmark | None = None
    accept_loss: bool = False
    lost: int = 0
    lost_places: set[Place] = field(default_factory=set)
    heard: list[Mapping[Lane, Reached]] = field(default_factory=list)
    committed: int = 0
    checks: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.query = Query()
        self.metrics = Metrics(CollectorRegistry())

    def lose(self, places: Collection[Place]) -> None:
        self.lost += 1
        self.lost_places |= set(places)

    def commit(self) -> None:
        self.committed += 1

    def starting_point(self) -> StartingPoint:
        return StartingPoint(
            self.kafka,
            (TOPIC,),
            bookmark=lambda: self.bookmark,
            other=OtherStream(lambda: self.others, (OTHERS,), self.heard.append),
            events_lost=self.lose,
            accept_loss=self.accept_loss,
        )

    def run(self, looks: int = 1, deaths: Sequence[str | None] = ()) -> Stop:
        """Start, and look at the query so many times."""
        self.query.deaths = list(deaths)
        stop = Stop(self.query, self.query.looks + looks)
        self.supervisor().run(stop)
        return stop

    def supervisor(self) -> QuerySupervisor:
        clocks = ClockWatch(self.kafka, 45.0, self.metrics)
        lag = LagWatch(self.kafka, (TOPIC,), self.metrics)
        self.starting = self.starting_point()
        return QuerySupervisor(
            query=self.query,
            decisions=self.decisions,
            starting=self.starting,
            measurements=Measurements(clocks, lag, self.commit, self.checks),
            metrics=self.metrics,
            overdue=Overdue(after=-1.0),
            restart_backoff_max=60.0,
        )

    # --- what was before

    def settled(self, at: int, topic: str = TOPIC, ids: KafkaIds | None = None) -> None:
        """Up to where another process has settled it."""
        self.bookmark = Bookmark("message", {(topic, 0): at}, ids or self.kafka.known)

    def counted(self, metric: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"reconciler_{metric}", labels) or 0.0


@pytest.fixture
def bench() -> Bench:
    return Bench()


def batch(dropped: int = 0, read: int = 0) -> BatchReport:
    return BatchReport(1.5, {TOPIC: {0: read}}, state_rows=3, dropped=dropped)


# --- the first start


def test_without_anything_it_reads_from_the_beginning_and_stops_when_it_is_told_to(
    bench: Bench,
) -> None:
    bench.run()
    assert bench.query.started == [{HERE: 0}]
    assert bench.query.published == [HELD]
    assert bench.query.stopped == 1
    assert bench.lost == 0


def test_without_a_bookmark_what_kafka_no_longer_holds_is_not_known(bench: Bench) -> None:
    bench.kafka.beginning = 5
    bench.run()
    assert bench.query.started == [{HERE: 5}]
    assert bench.lost == 1


@pytest.mark.parametrize("beginning", [0, 40])
def test_it_begins_after_what_is_settled(bench: Bench, beginning: int) -> None:
    bench.settled(40)
    bench.kafka.beginning = beginning
    bench.run()
    assert bench.query.started == [{HERE: 40}]


def test_a_partition_that_came_since_is_read_from_its_beginning(bench: Bench) -> None:
    bench.bookmark = Bookmark("message", {}, bench.kafka.known)
    bench.kafka.beginning = 3
    bench.run()
    assert bench.query.started == [{HERE: 3}]


# --- deaths


def test_a_query_that_died_begins_again(bench: Bench) -> None:
    bench.run(looks=3, deaths=[None, OUTAGE, None])
    assert bench.query.started == [{HERE: 0}, AGAIN]
    assert bench.decisions.recalled == 1
    assert bench.counted("query_restarts_total", family="message") == 1


def test_deaths_in_a_row_are_waited_for_longer_each_time(bench: Bench) -> None:
    stop = bench.run(looks=4, deaths=[OUTAGE] * 3)
    assert stop.waited == [1, 1, 1, 2, 1, 4, 1, 1]  # at each look a second; at each death longer


def test_a_batch_between_two_deaths_shortens_the_wait(bench: Bench) -> None:
    bench.query.batches = {1: batch()}
    stop = bench.run(looks=3, deaths=[OUTAGE] * 2)
    assert stop.waited == [1, 1, 1, 1, 1, 1]


def test_the_pause_doubles_up_to_the_longest() -> None:
    assert [backoff(number, 60.0) for number in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize("accepted", [True, False])
def test_events_that_were_lost_while_it_ran_end_it_unless_that_is_accepted(
    bench: Bench, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.settled(40)
    bench.accept_loss = accepted

    def drops() -> None:
        bench.kafka.beginning = 41

    monkeypatch.setattr(bench.decisions, "check_lease", drops)  # the first call after the death
    if not accepted:
        with pytest.raises(EventsLost):
            bench.run(deaths=[LOST])
        return
    bench.run(deaths=[LOST])
    assert bench.query.started == [{HERE: 40}, {HERE: 41}]
    assert bench.lost == 1


def test_a_lost_lease_ends_it_before_anything_is_restarted(bench: Bench) -> None:
    bench.decisions.lease_lost = True
    with pytest.raises(AlreadyRunning):
        bench.run(deaths=[OUTAGE])
    assert bench.query.started == [{HERE: 0}]


def test_while_nobody_answers_it_waits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.decisions, "check_lease", unreachable)
    bench.run(looks=2, deaths=[OUTAGE, OUTAGE])
    assert bench.query.started == [{HERE: 0}]
    assert bench.query.stopped == 1


# --- what only a new process mends


def fails() -> None:
    raise EndedItself("a folder was removed")


def test_what_only_a_new_process_mends_ends_it_after_a_death(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "CLOCKS_EVERY", 1e9)
    bench.checks = [lambda: fails() if bench.query.looks else None]
    with pytest.raises(EndedItself, match="a folder was removed"):
        bench.run(looks=9, deaths=["FileNotFoundError: pyspark-1"])
    assert bench.query.started == [{HERE: 0}], "it is not restarted"


def test_and_at_a_quiet_moment(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "CLOCKS_EVERY", -1.0)
    stops: list[bool] = []
    bench.query.on_stop = lambda: stops.append(True)
    bench.checks = [lambda: fails() if bench.query.looks > 2 else None]
    with pytest.raises(EndedItself):
        bench.run(looks=9)
    assert bench.query.looks == 3
    assert len(stops) == 2, "before it begins, and at the end: nothing runs on"


def test_where_it_is_told_to_stop_meanwhile_that_is_a_clean_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends all processes of a group ends Spark first, and it removes its folders."""
    monkeypatch.setattr(supervisor, "CLOCKS_EVERY", -1.0)

    def removed() -> None:
        bench.query.looks = 9
        fails()

    bench.checks = [removed]
    bench.run(looks=9)
    assert bench.query.stopped == 1


# --- while it runs


def test_rows_that_the_watermark_dropped_are_read_again(bench: Bench) -> None:
    bench.query.batches = {0: batch(dropped=2)}
    bench.run()
    assert bench.query.started == [{HERE: 0}, AGAIN]
    assert bench.counted("rows_dropped_by_watermark_total") == 2


def test_records_that_should_have_come_out_by_now_are_released(bench: Bench) -> None:
    """A partition that is silent afterwards would never show that they were dropped."""
    bench.query.batches = {look: batch(read=20 + look) for look in range(BATCHES_TO_CLOSE + 2)}
    bench.run(looks=BATCHES_TO_CLOSE + 2)
    assert bench.query.released == [20, 21]
    assert bench.query.started == [{HERE: 0}]


def test_they_are_due_when_the_time_is_over_and_some_batches_have_ended_since() -> None:
    overdue = Overdue(after=10.0)
    read: list[Offsets] = [{TOPIC: {0: number}} for number in range(9)]
    due = [overdue.batch(at, read[n]) for n, at in enumerate([0, 5, 10, 10.5, 12, 14, 60, 61])]
    assert due == [None, None, None, None, None, read[0], None, None]
    assert overdue.batch(62, read[8]) == read[5]
    overdue.clear()
    assert [overdue.batch(at, read[0]) for at in (100, 120, 121, 122)] == [None] * 3 + [read[0]]


def test_each_batch_is_shown(bench: Bench) -> None:
    bench.query.batches = {0: batch()}
    bench.run()
    assert bench.counted("batch_duration_seconds_sum") == 1.5
    assert bench.counted("batch_duration_seconds_count") == 1
    assert bench.counted("state_rows", family="message") == 3


def test_clocks_and_lag_are_measured_now_and_then(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "KAFKA_EVERY", 1e9)
    bench.run(looks=5)
    assert (bench.kafka.measured, bench.committed) == (1, 2)  # the second time at the end
    assert bench.counted("kafka_lag_records", topic=TOPIC, partition="0") == 100


def test_after_a_restart_the_lag_is_not_known_until_a_batch_has_ended(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "KAFKA_EVERY", -1.0)
    bench.query.batches = {1: batch(read=40), 3: batch(read=70)}
    shown: list[float | None] = []

    def commit() -> None:
        place = {"topic": TOPIC, "partition": "0"}
        read = bench.metrics.registry.get_sample_value
        shown.append(read("reconciler_kafka_lag_records", place))

    bench.commit = commit  # type: ignore[method-assign]
    bench.run(looks=5, deaths=[None, OUTAGE])
    assert shown[:-1] == [100, 60, None, 30, 30]
