"""Which kind of event a record is: of a table that wakes a key, of a canary, or of another table.

The agent writes the events of all captured tables into one topic, also those of other keyspaces and
applications. These are left out. Native Spark SQL.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from checkpoints.clock import MICROS_A_MILLI
from reconcilers.capture.frontier import CANARY_TABLE
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family

_TABLE, _FAMILY = (rf'"{name}"\s*:\s*"([^"]*)"' for name in ("table", "family"))


def once(costly: Column) -> Column:
    """The same column, marked so that a filter above its projection does not compute it again.

    Spark moves a filter below a projection, with all columns that the filter uses. It does not move
    columns that are not deterministic, such as the number of the task.
    """
    return F.when(F.spark_partition_id() >= 0, costly)


def perhaps_wanted(family: Family) -> Column:
    """Whether a record may be wanted, by its text alone; all are by the family of messages.

    It is a fraction of the cost of reading the JSON, and most records are of messages. These keep
    what names nothing, too. Reads the column ``value``.
    """
    if family.name == MESSAGE.name:
        return F.lit(True)
    name = name_in_text()
    return is_named(name, family) | is_canary(name)


def name_in_text() -> Column:
    """The table of an event, or the family of a published key, found in the text of a record.

    A value of a user holds no such text: JSON escapes its quotes. Java searches a literal beginning
    ten times as fast as Spark searches a string that begins with a quote. Reads ``value``.
    """
    text = F.col("value").cast("string")
    table, family = (F.regexp_extract(text, each, 1) for each in (_TABLE, _FAMILY))
    return F.when(table != "", table).otherwise(family)


def is_named(name: Column, family: Family) -> Column:
    """Whether a record with this `name_in_text` is perhaps an event or a key of the family."""
    return name.isin(*family.wakes_on, family.name)


def is_canary(name: Column) -> Column:
    """Whether a record with this `name_in_text` is perhaps a canary's."""
    return name == CANARY_TABLE


def is_wanted(family: Family, keyspace: str) -> Column:
    """Whether to look at a record: an event of the family, an echo, or a key of it, published.

    A record that names no table or no family cannot be told from those; the family of messages
    keeps it as a bad record. Reads the columns ``looked_again``, ``v`` and ``echo``.
    """
    source, told = F.col("v").source, F.col("v").family
    event = (source.keyspace == keyspace) & source["table"].isin(*family.wakes_on)
    again = told == family.name
    if family.name == MESSAGE.name:
        others = [each.name for each in FAMILIES if each.name != MESSAGE.name]
        event |= source.keyspace.isNull() | source["table"].isNull()
        again = ~F.coalesce(told.isin(*others), F.lit(False))
    return F.when(F.col("looked_again"), again).otherwise(event | F.col("echo").isNotNull())


def echo(canary_keyspace: str) -> Column:
    """The canary whose echo a record is, as text; null for any other record.

    The text is ``place|lane|partitions|number|previous|steady|idle|at``. A deleted canary, or one
    without a number, does not count. A canary without ``previous`` is the first. Reads ``key``,
    ``value`` and ``v``.
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
