"""What Spark's JVM writes, as lines of our log."""

import json
from pathlib import Path

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
    assert "ValueError: in two | lines" in task["message"], "the worker's traceback"
    assert " | \tat org.apache.spark.scheduler.Task.run" in task["message"], "the JVM's"
    assert stage["message"].startswith("TaskSetManager: Task 0 in stage 0.0 failed")
