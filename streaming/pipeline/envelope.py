"""Step 1, wake: Kafka records to keys, in native Spark SQL. No Python runs per event.

An event is never believed as state: it only says which key may have changed. From each record come
the ids that it names, its write time, and whether it was shaped like a delete. What cannot be
decoded gets a reason and goes on to the dead letters. Shapes of the events: Debezium's Cassandra
connector, captured (see ARCHITECTURE.md, "Events").
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the field's usual name)

from reconcilers.family import Family
from reconcilers.model import Kind

BAD_RECORD_BYTES = 65_536

_UUID = "^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"
_BOUND = "STRUCT<values: ARRAY<STRUCT<name: STRING, value: STRING>>>"

KEY_SCHEMA = (
    "mailboxid STRING, messageid STRING, uid BIGINT, recent_mesage_uid BIGINT, _corrupt STRING"
)
VALUE_SCHEMA = f"""
    op STRING,
    ts_ms BIGINT,
    source STRUCT<ts_us: BIGINT, keyspace: STRING, `table`: STRING>,
    after STRUCT<
        messageid: STRUCT<value: STRING>, _range_start: {_BOUND}, _range_end: {_BOUND}>,
    family STRING,
    wake STRUCT<mailboxid: STRING, messageid: STRING, uid: BIGINT, oldest: BIGINT,
        deleted_from: STRING, deleted_at: BIGINT, projection: STRING, suspected: STRING>,
    _corrupt STRING
"""
_HAVE_EXPIRY = ('"deletion_ts":1', '"deletion_ts":2')  # any until 2065, in the agent's compact JSON
_EXPIRY = r'"deletion_ts":(\d{16})\b'
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}

KEY_COLUMNS = (
    "mailboxid",
    "messageid",
    "uid",
    "deleted_from",
    "deleted_at",
    "looked_again",
    "projection",
    "suspected",
    "expires_at",
)
BAD_COLUMNS = ("reason", "topic", "partition", "offset", "raw")


def decode(records: DataFrame, family: Family, keyspace: str, suspects_topic: str) -> DataFrame:
    """Kafka's records as keys: `KEY_COLUMNS`, times in µs, and `BAD_COLUMNS`, null for good ones.

    ``capture_delay`` is the agent's clock minus the write time, µs; negative for a fast writer.
    """
    parsed = records.select(
        "topic",
        "partition",
        "offset",
        "value",
        (F.col("topic") == suspects_topic).alias("looked_again"),
        F.from_json(F.col("key").cast("string"), KEY_SCHEMA, _OPTIONS).alias("k"),
        F.from_json(F.col("value").cast("string"), VALUE_SCHEMA, _OPTIONS).alias("v"),
    ).where(F.col("value").isNotNull())  # a tombstone record of Kafka's compaction says nothing new
    reason = F.when(F.col("looked_again"), _bad_suspect(family)).otherwise(
        _bad_event(family, keyspace)
    )
    return _as_keys(parsed.withColumn("reason", reason), family)


def _bad_suspect(family: Family) -> Column:
    value = F.col("v")
    return (
        F.when(value.isNull() | value["_corrupt"].isNotNull(), "malformed JSON")
        .when(value.wake.isNull(), "not a suspect")
        .when(value.family.isNull() | (value.family != family.name), "unknown family")
        .when(_not_uuids(value.wake), "wrong type: an id is not a UUID")
        .when(~value.wake.suspected.isin(*Kind), "unknown kind")
    )


def _bad_event(family: Family, keyspace: str) -> Column:
    key, value = F.col("k"), F.col("v")
    table = value.source["table"]
    partition_key = F.when(table == family.truth, key[family.partition]).otherwise(key.mailboxid)
    whole_key = key.mailboxid.isNotNull() & _uid(key).isNotNull() & partition_key.isNotNull()
    return (
        F.when(value.isNull() | value["_corrupt"].isNotNull(), "malformed JSON or wrong types")
        .when(
            value.source.isNull() | value.source.ts_us.isNull() | value.ts_ms.isNull(),
            "no write time: not an event",
        )
        .when(~value.op.isin("i", "u", "d", "r") | value.op.isNull(), "unknown op")
        .when(
            table.isNull() | ~table.isin(*family.wakes_on) | (value.source.keyspace != keyspace),
            "unknown table",
        )
        .when(key.isNull() | key["_corrupt"].isNotNull(), "malformed key")
        .when(partition_key.isNull(), "missing key")
        .when(value.op.isin("i", "u") & ~whole_key, "missing key")
        .when(_not_uuids(key), "wrong type: an id is not a UUID")
        .when(~_ranged("mailboxid").rlike(_UUID), "wrong type: mailboxid is not a UUID")
        .when(
            value.after.messageid.value.isNotNull() & ~value.after.messageid.value.rlike(_UUID),
            "wrong type: messageid is not a UUID",
        )
    )


def _uid(key: Column) -> Column:
    """The UID, as each table's key names it."""
    return F.coalesce(key.uid, key.recent_mesage_uid)


def _not_uuids(ids: Column) -> Column:
    """Whether any of the two ids is there and is not a UUID."""
    mailbox, message = ids.mailboxid, ids.messageid
    return (mailbox.isNotNull() & ~mailbox.rlike(_UUID)) | (
        message.isNotNull() & ~message.rlike(_UUID)
    )


def _as_keys(parsed: DataFrame, family: Family) -> DataFrame:
    key, value, good = F.col("k"), F.col("v"), F.col("reason").isNull()
    event = good & ~F.col("looked_again")
    deleted = event & value.op.isin("d", "r")
    from_truth = event & (value.source["table"] == family.truth)
    mailboxid = F.coalesce(key.mailboxid, _ranged("mailboxid"))
    told = deleted & ((value.op == "d") | mailboxid.isNotNull())  # of a slice: not which rows

    def of(again: Column, from_event: Column) -> Column:
        return F.when(good & F.col("looked_again"), again).when(event, from_event)

    return parsed.select(
        of(value.wake.mailboxid, mailboxid).alias("mailboxid"),
        of(value.wake.messageid, F.coalesce(key.messageid, value.after.messageid.value)).alias(
            "messageid"
        ),
        of(value.wake.uid, _uid(key)).alias("uid"),
        of(value.wake.deleted_from, F.when(told, value.source["table"])).alias("deleted_from"),
        of(value.wake.deleted_at, F.when(told, value.source.ts_us)).alias("deleted_at"),
        F.col("looked_again"),
        of(F.coalesce(value.wake.projection, F.lit(family.listing.name)), F.lit(None)).alias(
            "projection"
        ),
        of(value.wake.suspected, F.lit(None)).alias("suspected"),
        of(value.wake.oldest, value.source.ts_us).alias("written"),
        F.coalesce(from_truth, F.lit(False)).alias("from_truth"),
        F.when(event, value.ts_ms * 1000 - value.source.ts_us).alias("capture_delay"),
        F.when(event & ~deleted, _expires_at(F.col("value"))).alias("expires_at"),
        "reason",
        *(F.when(~good, F.col(name)).alias(name) for name in ("topic", "partition", "offset")),
        F.when(~good, F.substring("value", 1, BAD_RECORD_BYTES)).alias("raw"),
    )


def _expires_at(value: Column) -> Column:
    """When the last cell of an event expires, µs, null if none was written with a TTL.

    Whichever the columns are: so they are sought in the text, and most events have none.
    """
    text = value.cast("string")
    times = F.regexp_extract_all(text, F.lit(_EXPIRY), F.lit(1))
    first, second = (text.contains(each) for each in _HAVE_EXPIRY)
    return F.when(first | second, F.array_max(times.cast("array<bigint>")))


def _ranged(column: str) -> Column:
    """The column's value in a range delete whose both bounds name the same one; else null."""

    def bound(name: str) -> Column:
        values = F.col("v.after")[name].values
        return F.get(F.filter(values, lambda each: each["name"] == column), F.lit(0))["value"]

    start, end = bound("_range_start"), bound("_range_end")
    return F.when(start == end, start)
