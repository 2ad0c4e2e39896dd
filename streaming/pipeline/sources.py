"""Whose event a record is: of a table that wakes a key, of a canary, or of somebody else's.

The agent writes the events of all tables that it captures into one topic: those of other keyspaces
and applications, too. They are no business of ours, and left out. Native Spark SQL.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from checkpoints.clock import MICROS_A_MILLI
from reconcilers.capture.frontier import CANARY_TABLE
from reconcilers.declared.family import Family


def once(costly: Column) -> Column:
    """The same column, which a filter above its projection does not compute again.

    Spark moves a filter below a projection, and with it whatever the filter asks for. It does not
    where a column is not deterministic, as the number of the task is not.
    """
    return F.when(F.spark_partition_id() >= 0, costly)


def is_wanted(family: Family, keyspace: str) -> Column:
    """Whether a record is to be looked at: an event of the family, an echo, a key looked at again.

    One that does not say of which table it is cannot be told from those: it is a bad record.
    Reads the columns ``looked_again``, ``v`` and ``echo``.
    """
    source = F.col("v").source
    known = source.keyspace.isNotNull() & source["table"].isNotNull()
    ours = (source.keyspace == keyspace) & source["table"].isin(*family.wakes_on)
    return F.col("looked_again") | ~known | ours | F.col("echo").isNotNull()


def echo(canary_keyspace: str) -> Column:
    """The canary that a record is the echo of; null of any other record.

    As text: ``place|lane|partitions|number|previous|steady|idle|at``. A canary that was deleted,
    or has no number, is no canary. One that does not say which came before it is the first. Reads
    ``key``, ``value`` and ``v``.
    """
    value = F.col("v")
    source, key, text = value.source, F.col("key").cast("string"), F.col("value").cast("string")
    canary = (source.keyspace == canary_keyspace) & (source["table"] == CANARY_TABLE)
    place, number = F.get_json_object(key, "$.place"), _number(text, "number")
    previous = F.coalesce(_number(text, "previous"), F.lit(0))
    steady = F.coalesce(_cell(text, "steady") == "true", F.lit(False))
    idle = F.coalesce(_number(text, "idle_us"), F.lit(0))
    written = F.try_multiply(_number(text, "written_ms"), F.lit(MICROS_A_MILLI))
    at = F.coalesce(written, F.lit(0))
    lane = F.coalesce(F.get_json_object(key, "$.lane").try_cast("int"), F.lit(0))
    partitions = F.coalesce(_number(text, "partitions"), F.lit(0))
    parts = (place, lane, partitions, number, previous, steady, idle, at)
    told = F.concat_ws("|", *(part.cast("string") for part in parts))
    sung = value.op.isin("i", "u") & number.isNotNull() & ~place.contains("|")
    return F.when(canary & ~F.col("looked_again") & sung, told)


def _number(text: Column, name: str) -> Column:
    return _cell(text, name).try_cast("bigint")


def _cell(text: Column, name: str) -> Column:
    return F.get_json_object(text, f"$.after.{name}.value")
