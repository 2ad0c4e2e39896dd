"""Why a query died: the line of Spark's long story that says so."""

import pytest

from streaming.pipeline.spark_errors import cause_of, is_of_a_record

OURS = "reconcilers.words.errors"
THROUGH_OUR_BATCH = """An exception was raised by the Python Proxy. Return Message: Traceback:
  File "query.py", line 120, in _batch
    look = self._look(settled)
{reason}

=== Streaming Query ===
Current State: ACTIVE
"""
UNREACHABLE = THROUGH_OUR_BATCH.format(
    reason=f"{OURS}.Unreachable: reading lineage: no host answered"
)
IN_A_WORKER = THROUGH_OUR_BATCH.format(
    reason="py4j.protocol.Py4JJavaError: An error occurred while calling o1.collect.\n"
    ": org.apache.spark.SparkException: Job aborted: Traceback (most recent call last):\n"
    f"{OURS}.Overloaded: repairing a projection row: not now\n"
    "\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:645)"
)
OF_OUR_OWN = THROUGH_OUR_BATCH.format(reason="AttributeError: 'Share' object has no attribute 'a'")
STATE_STORE = THROUGH_OUR_BATCH.format(
    reason="py4j.protocol.Py4JJavaError: An error occurred while calling o1.collect.\n"
    ": org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE] unreadable\n"
    "\tat org.apache.spark.sql.execution.streaming.state.RocksDB.load(RocksDB.scala:1)"
)
OFFSETS = "java.lang.IllegalStateException: batch 5 doesn't exist (latest: 4)"


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (UNREACHABLE, f"{OURS}.Unreachable: reading lineage: no host answered"),
        (IN_A_WORKER, f"{OURS}.Overloaded: repairing a projection row: not now"),
        (OF_OUR_OWN, "AttributeError: 'Share' object has no attribute 'a'"),
        (STATE_STORE, "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE] unreadable"),
        (OFFSETS, OFFSETS),
        ("", "no reason given"),
    ],
)
def test_the_line_that_says_why(told: str, line: str) -> None:
    assert cause_of(told) == line


BY_A_WORKER = "pyspark.errors.PythonException: {reason}"


@pytest.mark.parametrize(
    ("reason", "blamed"),
    [
        (f"{OURS}.Unreachable: reading the truth: ReadTimeout: no answer in time", True),
        (f"{OURS}.Overloaded: reading lineage: WriteFailure: code=1500", True),
        (f"{OURS}.Overloaded: reading the truth: Unavailable: code=1000", False),
        (OURS + ".Overloaded: x: NoHostAvailable: {'n1': Unavailable('code')}", False),
        (f"{OURS}.Refused: reading James's tables: Unauthorized: code=2100", False),
        (f"{OURS}.Refused: preparing: InvalidRequest: Undefined column name", False),
        ("ValueError: a fault of ours", True),
    ],
)
def test_no_record_is_blamed_where_nodes_are_away_or_a_table_refuses(
    reason: str, blamed: bool
) -> None:
    assert (
        is_of_a_record(THROUGH_OUR_BATCH.format(reason=BY_A_WORKER.format(reason=reason))) is blamed
    )
    assert not is_of_a_record(UNREACHABLE), "no worker's error at all"
