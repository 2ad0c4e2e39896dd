"""What is said of a cluster's executors, and when: Spark itself waits without a word."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event

import pytest

from reconcilers.words.errors import SparkDied, Unreachable
from reconcilers.words.exit_codes import ExitCode
from streaming.pipeline import executors as module
from streaming.pipeline import jvm
from streaming.pipeline.executors import (
    EndWithoutExecutors,
    Executor,
    ExecutorWatch,
    Stage,
    asked_for,
)
from streaming.pipeline.spark_state import StandaloneLog

ONE, TWO = Executor("0", "h1"), Executor("1", "h2")


@dataclass
class Spark:
    """Says what it is given."""

    there: Sequence[Executor] = ()
    runs: Sequence[Stage] = ()
    ended: bool = False

    def executors(self) -> Sequence[Executor]:
        if self.ended:
            raise SparkDied("Spark's master has ended the application")
        return self.there

    def stages(self) -> Sequence[Stage]:
        return self.runs


@dataclass
class Told:
    """The lines of a watch over two executors that were asked for, from second 0 on."""

    logs: pytest.LogCaptureFixture
    spark: Spark = field(default_factory=Spark)

    def __post_init__(self) -> None:
        self.watch = ExecutorWatch(self.spark, asked=2)

    def at(self, now: float, *there: Executor, runs: Sequence[Stage] = ()) -> list[str]:
        self.spark.there, self.spark.runs = there, runs
        self.logs.clear()
        self.watch.look(now)
        return self.logs.messages


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    caplog.set_level(logging.WARNING, "reconciler")
    return Told(caplog)


def test_missing_executors_are_a_line_a_minute_until_they_are_there(told: Told) -> None:
    assert told.at(0) == told.at(29) == []
    (line,) = told.at(31)
    assert line.startswith("Spark has 0 of 2 executors for 31 s: its cluster has no free cores")
    assert told.at(60, ONE) == []
    (line,) = told.at(91, ONE)
    assert line.startswith("Spark has 1 of 2 executors for 91 s")
    assert told.at(95, ONE, TWO) == told.at(100, ONE) == told.at(129, ONE) == []
    assert len(told.at(130, ONE)) == 1


def test_a_lost_executor_is_a_line_with_its_host_and_why(told: Told) -> None:
    gone = Executor("0", "h1", lost="Command exited with code 137")
    expected = ["an executor was lost, the last on h1: Command exited with code 137"]
    assert told.at(0, gone, TWO) == expected
    assert told.at(5, gone, TWO) == [], "it is told once"


def test_executors_that_die_one_after_another_are_a_line_a_minute(told: Told) -> None:
    died = [Executor(str(number), f"h{number % 2}", lost="full disk") for number in range(14)]
    assert len(told.at(0, *died[:1])) == 1
    for number in range(2, 13):
        lost = [line for line in told.at(4.0 * number, *died[:number]) if "lost" in line]
        assert lost == []
    (line,) = (line for line in told.at(61, *died) if "lost" in line)
    assert line == "13 executors were lost, the last on h1: full disk"


def test_a_stage_that_finishes_nothing_names_the_host_that_works(told: Told) -> None:
    busy = Executor("0", "h1", tasks=1)
    assert told.at(0, busy, TWO, runs=[Stage(7, 4, 2)]) == []
    assert told.at(50, busy, TWO, runs=[Stage(7, 4, 3)]) == [], "it goes on"
    assert told.at(109, busy, TWO, runs=[Stage(7, 4, 3)]) == []
    (line,) = told.at(110, busy, TWO, runs=[Stage(7, 4, 3)])
    assert line == "a stage of Spark's waits for 60 s for h1: 3 of 4 tasks are done"
    assert told.at(115, busy, TWO, runs=[Stage(7, 4, 3)]) == []
    assert told.at(120, busy, TWO) == told.at(300, busy, TWO, runs=[Stage(8, 4, 3)]) == []


def test_the_watch_ends_with_spark(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0)
    told.spark.ended = True
    told.watch.run(Event())


# --- the end of a stream without executors


def test_a_stream_without_executors_ends_as_without_a_server() -> None:
    shown: list[int] = []
    spark = Spark()
    end = EndWithoutExecutors(spark, shown.append, within=300)
    end.look(0)
    end.look(299)
    spark.there = [ONE, Executor("1", "h2", lost="it died")]
    end.look(301)
    spark.there = []
    end.look(400)
    with pytest.raises(Unreachable, match=r"no executor for 300 s.*executors_within") as ended:
        end.look(700)
    assert ended.value.exit_code == ExitCode.UNREACHABLE
    assert shown == [0, 0, 1, 0, 0]


def test_an_application_that_has_ended_ends_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EVERY", 0)
    end = EndWithoutExecutors(Spark(ended=True), print, within=300)
    with pytest.raises(SparkDied):
        end.run(Event())


def test_a_stream_that_is_stopped_says_nothing_of_it() -> None:
    stop = Event()

    class Stopped(Spark):
        def executors(self) -> Sequence[Executor]:
            stop.set()
            raise SparkDied("a signal to the process group has ended it")

    EndWithoutExecutors(Stopped(), print, within=300).run(stop)


# --- what was asked for, and what a standalone master reports


@pytest.mark.parametrize(
    ("master", "options", "number"),
    [
        ("spark://m:7077", {}, 1),
        ("spark://m:7077", {"spark.cores.max": "8", "spark.executor.cores": "3"}, 3),
        ("spark://m:7077", {"spark.cores.max": "8"}, 1),
        ("yarn", {}, 2),
        ("k8s://https://m", {"spark.executor.instances": "5"}, 5),
    ],
)
def test_executors_that_the_options_ask_for(
    master: str, options: dict[str, str], number: int
) -> None:
    assert asked_for(master, options) == number


CLIENT = "StandaloneAppClient$ClientEndpoint: "


def test_an_executor_that_ends_at_its_start_has_a_host_and_a_reason() -> None:
    log = StandaloneLog()
    lines = (
        "Executor added: app-1/3 on worker-1-10.0.0.2-41 (10.0.0.2:41) with 1 core(s)",
        "Executor updated: app-1/3 is now RUNNING",
        "Executor updated: app-1/3 is now EXITED (Command exited with code 1)",
        "Executor updated: app-1/4 is now LOST",
    )
    assert all(log.take(CLIENT + line) for line in lines)
    assert not log.take("TaskSetManager: Lost task 0.0")
    assert log.ended() == [
        Executor("3", "10.0.0.2", lost="Command exited with code 1"),
        Executor("4", "an unknown host", lost="lost"),
    ]


def test_lines_of_executors_are_kept_and_not_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = logging.getLogger("a JVM's")  # that of a command may be filtered from its end on
    monkeypatch.setattr(jvm, "log", own)
    monkeypatch.setattr(jvm, "STANDALONE", known := StandaloneLog())
    ends = f"{CLIENT}Executor updated: app-1/77 is now EXITED (no disk)\n"
    jvm.relay([ends.encode(), b"TaskSetManager: Lost task\n"])
    assert caplog.messages == ["TaskSetManager: Lost task"]
    assert [each.number for each in known.ended()] == ["77"]
