"""The end of step 2, wake: the keys that a slice's events name, each once. Native Spark SQL."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from reconcilers.declared.family import Family

AGGREGATED = ("written", "from_truth", "capture_delay")
"""Key columns that are summed up over the events of a key; all others tell keys apart."""


def grouper(family: Family) -> Callable[[DataFrame, int], DataFrame]:
    """A function that makes shares of whole groups (mailboxes) of decoded keys, one for each task.

    It makes as many shares as requested; one share needs no shuffle. Columns: what tells keys
    apart, then the sums. A canary (``echo``) is a row of its own. The keys of one row, which its
    two events name differently, follow each other in a share, so that the row is read once.
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
