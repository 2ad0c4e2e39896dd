"""Step 2, wake, its end: the keys that a slice's events name, each once, however often it changed.

Native Spark SQL, as the decoding before it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from reconcilers.family import Family

AGGREGATED = ("written", "from_truth", "capture_delay")
"""Of a key's columns, what its events are summed up by; by all others they are told apart."""


def each_key_once(decoded: DataFrame, family: Family, partitions: int) -> DataFrame:
    """The keys of `envelope.decode`, in shares of whole groups (mailboxes), one a Spark task.

    Columns: what tells keys apart, then the sums. In a share the keys of one row (its two events
    name it differently) come one after the other, so that it is read once.
    """
    apart = [name for name in decoded.columns if name not in AGGREGATED]
    key = [column.name for column in family.key]
    return (
        decoded.repartition(partitions, key[0])
        .groupBy(*apart)
        .agg(
            F.min("written").alias("oldest"),
            F.max("written").alias("newest"),
            F.max("from_truth").alias("from_truth"),
            F.min("capture_delay").alias("quickest"),
            F.count("*").cast("int").alias("changes"),
        )
        .sortWithinPartitions(*key)
    )
