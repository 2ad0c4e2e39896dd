"""The sampler's thread: what it counts, when it is fed by batches and by an earlier process."""

from __future__ import annotations

from threading import Event
from typing import Never

import pytest
from prometheus_client import CollectorRegistry
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from reconcilers.rows.sample import AGES, Sample, SampledBatch, SampledChange
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Row
from streaming.commands.look.nines import as_lines, nines_in
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.sampler import Sampler
from streaming.steps.sample_looks import SampledLooks
from tests.builders.rows import COMPLETE, FAMILY, MESSAGE_ID, NOW, PROJECTION, SECOND, SLOT
from tests.fakes.memory_tables import MemoryTables

CHANGE = SampledChange(SLOT, MESSAGE_ID, NOW)
TEN, MINUTE, TEN_MINUTES = AGES


class Clock:
    """Stands still."""

    now = NOW

    def __call__(self) -> int:
        return self.now


class Bench:
    """A sampler over tables in memory."""

    def __init__(self, most: int = 10, due_after: int = 0) -> None:
        row = Row(dict(COMPLETE), {"modseq": NOW})
        self.tables = MemoryTables({MESSAGE_ID: (row,)}, {PROJECTION.name: {SLOT: row}})
        self.clock, self.metrics = Clock(), Metrics(CollectorRegistry())
        self.before = SampledBatch()
        self.sampler = Sampler(
            Sample((PROJECTION.name,), due_after=due_after),
            SampledLooks(FAMILY, self.tables),
            most,
            self.metrics,
            self.clock,
            earlier=lambda: self.before,
        )

    def at(self, now: int) -> None:
        self.clock.now = now
        self.sampler.turn()

    def counted(self, age: int, outcome: str) -> float:
        labels = PROJECTION.name, str(age // SECOND), outcome
        return float(self.metrics.sampled_looks.labels(*labels)._value.get())


def test_a_change_is_looked_at_at_each_age() -> None:
    bench = Bench()
    bench.sampler.take(SampledBatch((CHANGE, CHANGE)))
    bench.at(NOW)
    assert bench.counted(TEN, "consistent") == 0
    bench.at(NOW + TEN)
    bench.tables.rows.clear()
    bench.at(NOW + MINUTE)
    bench.sampler.take(SampledBatch((CHANGE,)))  # a replay
    bench.at(NOW + TEN_MINUTES + TEN_MINUTES)
    assert bench.counted(TEN, "consistent") == 1
    assert bench.counted(MINUTE, "inconsistent") == 1
    assert bench.counted(TEN_MINUTES, "not_looked_at") == 1
    assert sum(bench.counted(age, "not_looked_at") for age in AGES) == 1


def test_changes_beyond_the_limit_of_a_batch_are_shown_as_not_looked_at() -> None:
    bench = Bench()
    bench.sampler.take(SampledBatch((CHANGE,), left_out=4))
    bench.at(NOW + TEN)
    assert bench.counted(TEN, "consistent") == 1
    assert [bench.counted(age, "not_looked_at") for age in AGES] == [4, 4, 4]
    bench.at(NOW + TEN)
    assert bench.counted(TEN, "not_looked_at") == 4
    found, *_ = nines_in(bench.metrics.registry.collect())
    assert (found.share, found.missing, found.high) == (1.0, 4, 1.0)
    assert found.low < 0.05


def test_changes_from_before_the_start_are_looked_at_if_their_look_was_not_made() -> None:
    bench = Bench(due_after=NOW + TEN)
    bench.before = SampledBatch((CHANGE,))
    bench.clock.now = NOW + 2 * MINUTE
    stop = Event()
    stop.set()
    bench.sampler.run(stop)
    bench.sampler.turn()
    bench.at(NOW + TEN_MINUTES)
    assert [bench.counted(TEN, each) for each in ("consistent", "not_looked_at")] == [0, 0]
    assert bench.counted(MINUTE, "not_looked_at") == 1, "while no process ran"
    assert bench.counted(TEN_MINUTES, "consistent") == 1


def test_a_start_without_kafka_samples_what_comes(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()

    def away() -> SampledBatch:
        raise Unreachable("Kafka: nobody answers")

    bench.sampler.earlier = away
    stop = Event()
    stop.set()
    bench.sampler.run(stop)
    assert "changes from before this start are not sampled: Kafka" in caplog.text


def test_nines_are_shown_with_their_sample_and_confidence() -> None:
    bench = Bench()
    assert nines_in(bench.metrics.registry.collect()) == ()
    labels = PROJECTION.name, "600"
    bench.metrics.sampled_looks.labels(*labels, "consistent").inc(9_990)
    bench.metrics.sampled_looks.labels(*labels, "inconsistent").inc(10)
    bench.metrics.sampled_looks.labels(*labels, "not_looked_at").inc(5)
    (found,) = nines_in(bench.metrics.registry.collect())
    assert (found.system, found.age, found.share) == ("messages", 600, 0.999)
    assert found.low < 0.999 - 5 / 10_005 < found.high
    assert list(as_lines([found])) == [
        "consistent after 600 s, messages: 99.900 % of 10,000 sampled changes (with 95 % confidence"
        " 99.752 % to 99.945 %), 5 not looked at"
    ]


@pytest.mark.parametrize("fault", [PySparkException("no offsets"), Py4JError("it ended")])
def test_a_read_that_spark_cannot_make_ends_nothing(
    fault: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    bench, stop = Bench(), Event()

    def fails() -> Never:
        stop.set()
        raise fault

    bench.sampler.earlier = fails
    bench.sampler.run(stop)
    (said,) = caplog.messages
    assert said == f"changes from before this start are not sampled: {fault}"
