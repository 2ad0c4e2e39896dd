"""Step 2, wake, its end: the keys that a slice's events name, each once, however often it changed.

Native Spark SQL, as the decoding before it.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from reconcilers.declared.family import Family

AGGREGATED = ("written", "from_truth", "capture_delay")
"""Of a key's columns, what its events are summed up by; by all others they are told apart."""


def grouper(family: Family) -> Callable[[DataFrame, int], DataFrame]:
    """The keys that `envelope.decoder` finds, in shares of whole groups (mailboxes), one a task.

    As many shares as are asked for; one needs no shuffle.

    Columns: what tells keys apart, then the sums. A canary (``echo``) is a row of its own. In a
    share the keys of one row (its two events name it differently) come one after the other, so that
    it is read once.
    """
    key = [column.name for column in family.key]
    sums = (
        F.min("written").alias("oldest"),
        F.max("from_truth").alias("from_truth"),
        F.min("capture_delay").alias("quickest"),
        F.count("*").cast("int").alias("changes"),
    )

    def each_key_once(decoded: DataFrame, shares: int) -> DataFrame:
        apart = [name for name in decoded.columns if name not in AGGREGATED]
        shared = decoded.repartition(shares, key[0]) if shares > 1 else decoded.coalesce(1)
        return shared.groupBy(*apart).agg(*sums).sortWithinPartitions(*key)

    return each_key_once
