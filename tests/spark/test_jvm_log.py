"""What Spark's JVM writes, as lines of our log."""

import json
import logging
from pathlib import Path

import pytest

from streaming.pipeline import jvm
from tests.spark.scripts import run_script

FAILING = """
    import sys
    from py4j.protocol import Py4JJavaError
    from streaming.monitoring import logs
    from streaming.pipeline.session import spark_session
    from streaming.settings import load

    def bad(_):
        raise ValueError("in two\\nlines")

    logs.configure()
    places = {"CHECKPOINT_DIR": sys.argv[1], "JARS": ".jars/spark"}
    settings = load(None, {f"RECONCILE_STREAM__{name}": each for name, each in places.items()})
    try:
        spark_session(settings).sparkContext.parallelize([1], 1).mapPartitions(bad).collect()
    except Py4JJavaError:
        print("failed")
"""


def test_an_error_of_spark_is_one_line_with_its_trace(quick_spark: None, tmp_path: Path) -> None:
    ended = run_script(FAILING, tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "failed\n"), ended.stderr
    task, stage = map(json.loads, ended.stderr.splitlines())
    assert {task["level"], stage["level"]} == {"error"}
    assert task["message"].startswith("Executor: Exception in task 0.0 in stage 0.0")
    assert "ValueError: in two\nlines" in task["traceback"], "the worker's traceback"
    assert "\n\tat org.apache.spark.scheduler.Task.run" in task["traceback"], "the JVM's"
    assert stage["message"].startswith("TaskSetManager: Task 0 in stage 0.0 failed")
    assert "traceback" not in stage
    assert {task["logger"], stage["logger"]} == {"spark"}


WARNING = """
    import sys
    from streaming.monitoring import logs
    from streaming.pipeline.session import spark_session
    from streaming.pipeline.worker_process import log_as_driver
    from streaming.settings import load

    def warn(_):
        import logging
        log_as_driver()
        logging.getLogger("reconciler").warning("from a worker")
        return []

    logs.configure()
    places = {"CHECKPOINT_DIR": sys.argv[1], "JARS": ".jars/spark"}
    settings = load(None, {f"RECONCILE_STREAM__{name}": each for name, each in places.items()})
    spark_session(settings).sparkContext.parallelize([1, 2], 1).mapPartitions(warn).collect()
"""


def test_a_worker_logs_as_the_driver_does(quick_spark: None, tmp_path: Path) -> None:
    ended = run_script(WARNING, tmp_path)
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [(line["level"], line["message"]) for line in lines] == [("warning", "from a worker")]


def test_levels_and_lines_that_are_not_of_a_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker's output, and what only looks like a line of the log, are errors as they are."""
    monkeypatch.setattr(jvm, "log", logging.getLogger("a JVM's"))  # no command filters it
    caplog.set_level(logging.INFO)
    lines = (
        '{"level":"WARN","message":"A: b \\"c\\"","traceback":""}',
        '{"level":"FATAL","message":"A: dies","traceback":"e\\n\\tat f"}',
        "OpenJDK warning",
        '{"level": half',
        '{"time": 1, "level": "info", "logger": "a worker\'s", "message": "c"}',
        '{"time": 1}',
        '{"time": 1, "level": 30, "logger": "a", "message": "a number as level"}',
        '{"level":"info","ts":1,"msg":"of another program"}',
        '{"level":["x"],"message":"a","traceback":""}',
    )
    jvm.relay(f"{line}\n".encode() for line in lines)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("WARNING", 'A: b "c"'),
        ("CRITICAL", "A: dies"),
        ("ERROR", "OpenJDK warning"),
        ("ERROR", '{"level": half'),
        ("INFO", "c"),
        *(("ERROR", line) for line in lines[5:]),
    ]
    assert caplog.records[4].name == "a worker's"
    assert vars(caplog.records[1])["traceback"] == "e\n\tat f"
