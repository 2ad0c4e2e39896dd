"""Step 2, wake: Kafka records to keys, in native Spark SQL. No Python runs per event.

An event is never believed as state: it only names a key that may have changed. Each record gives
the ids that it names, its write time, and whether it has the shape of a delete. A record that
cannot be decoded gets a reason, and becomes a dead letter. Events of other tables are left out, and
those that change no row of a derived truth. The shapes are those of Debezium's Cassandra connector,
as captured (docs/stream.md, "Events").
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the field's usual name)

from reconcilers.declared.family import Family
from reconcilers.words.key import INTEGERS, TIMED, UUIDS
from reconcilers.words.model import PUBLISHED, Kind
from streaming.pipeline.event_columns import EventColumns, key_of
from streaming.pipeline.reasons import TIMED_UUID, UUID, any_wrong, misread, or_wrong_type
from streaming.pipeline.sources import echo, is_wanted, once, perhaps_wanted

BAD_RECORD_BYTES = 65_536
_BOUND = "STRUCT<values: ARRAY<STRUCT<name: STRING, value: STRING>>>"
_HAVE_EXPIRY = ('_ts":1', '_ts":2')  # until 2065; a leading quote would slow the search
_EXPIRY = r'"deletion_ts":(\d{16})\b'
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}

_PLACE = ("topic", "partition", "offset")
BAD_COLUMNS = ("reason", *_PLACE, "raw")


def key_schema(family: Family) -> str:
    """Spark's schema of the records' keys: each key column of each table that wakes the family."""
    truth, types = family.truth, {family.truth.source.name: _sql(family.truth.source.type)}
    for table in family.wakes_on:
        columns = zip(key_of(family, table), family.key, strict=False)
        types |= {name: _sql(column.type) for name, column in columns if name is not None}
    assert truth.source.name in types
    return _fields({**types, "_corrupt": "STRING"})


def value_schema(family: Family) -> str:
    """Spark's schema of a record's value: of an event, or of a key that was published again."""
    source, identity = family.truth.source, family.listing.identity
    told = {} if family.is_source_in_key else {str(identity): f"STRUCT<value: {_sql(source.type)}>"}
    told |= dict.fromkeys(family.truth.listed_in, "STRING")
    after = {**told, "_range_start": _BOUND, "_range_end": _BOUND}
    wake = {each.name: _sql(each.type) for each in family.named}
    wake |= {name: _sql(kind) for name, kind in PUBLISHED.items()}
    return _fields(
        {
            "op": "STRING",
            "ts_ms": "BIGINT",
            "source": _struct({"ts_us": "BIGINT", "keyspace": "STRING", "table": "STRING"}),
            "after": _struct(after),
            "family": "STRING",
            "wake": _struct(wake),
            "_corrupt": "STRING",
        }
    )


def _sql(cql_type: str) -> str:
    return "BIGINT" if cql_type in INTEGERS else "STRING"


def _fields(types: dict[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in types.items())


def _struct(types: dict[str, str]) -> str:
    return f"STRUCT<{', '.join(f'`{name}`: {kind}' for name, kind in types.items())}>"


def decoder(
    family: Family, keyspace: str, suspects_topic: str, canary_keyspace: str
) -> Callable[[DataFrame], DataFrame]:
    """Kafka's records as keys: `Family.named` and `Wake`'s fields, times in µs, and `BAD_COLUMNS`.

    `BAD_COLUMNS` are null for good records. ``written`` is the write time. ``capture_delay`` is the
    agent's clock minus it (µs): negative for a fast writer, null if either is absurd. ``echo`` is a
    canary's text (`sources.echo`); its row has a place in Kafka, no ids and no reason. The columns
    are made once and used for every slice, because making them takes about a thousand calls of the
    JVM.
    """
    parsed = (
        *_PLACE,
        "key",
        "value",
        (F.col("topic") == suspects_topic).alias("looked_again"),
        F.from_json(F.col("key").cast("string"), key_schema(family), _OPTIONS).alias("k"),
        once(F.from_json(F.col("value").cast("string"), value_schema(family), _OPTIONS)).alias("v"),
    )
    # a tombstone of Kafka's compaction names no change
    told = F.col("value").isNotNull() & perhaps_wanted(family)
    events = EventColumns(family)
    reason = F.when(F.col("looked_again"), _bad_suspect(family)).when(
        F.col("echo").isNull(), _bad_event(events)
    )
    heard, keys = echo(canary_keyspace), _keys(events)
    wanted = is_wanted(family, keyspace) & ~events.of_another_thing()
    told_or_bad = F.col("reason").isNotNull() | ~events.changes_no_row()

    def decode(records: DataFrame) -> DataFrame:
        parts = records.where(told).select(*parsed).withColumn("echo", heard).where(wanted)
        return parts.withColumn("reason", reason).where(told_or_bad).select(*keys)

    return decode


def _bad_suspect(family: Family) -> Column:
    value = F.col("v")
    ids = [(each, value.wake[each.name]) for each in family.named]
    return (
        F.when(value.isNull() | value["_corrupt"].isNotNull(), "malformed JSON")
        .when(value.wake.isNull(), "not a suspect")
        .when(value.family.isNull() | (value.family != family.name), "unknown family")
        .when(any_wrong(ids, UUIDS, UUID), "wrong type: an id is not a UUID")
        .when(any_wrong(ids, TIMED, TIMED_UUID), "wrong type: an id is not a time-based UUID")
        .when(~value.wake.suspected.isin(*Kind), "unknown kind")
    )


def _bad_event(events: EventColumns) -> Column:
    key, value, family = F.col("k"), F.col("v"), events.family
    parts = [(column, events.part(number)) for number, column in enumerate(family.key)]
    source = family.truth.source
    ids = [*parts, (source, events.source_in_key())]
    whole_key = events.partition().isNotNull()
    for _column, part in parts:
        whole_key &= part.isNotNull()
    whole_key |= events.names_source_alone()
    reason = (
        F.when(
            value.isNull() | value["_corrupt"].isNotNull(),
            misread("value", "malformed JSON or wrong types"),
        )
        .when(
            value.source.isNull() | value.source.ts_us.isNull() | value.ts_ms.isNull(),
            misread("value", "no write time: not an event"),
        )
        .when(~value.op.isin("i", "u", "d", "r") | value.op.isNull(), "unknown op")
        .when(events.table.isNull() | value.source.keyspace.isNull(), "unknown table")
        .when(key.isNull() | key["_corrupt"].isNotNull(), misread("key", "malformed key"))
        .when(events.partition().isNull(), misread("key", "missing key"))
        .when(value.op.isin("i", "u") & ~whole_key, "missing key")
        .when(any_wrong(ids, UUIDS, UUID), "wrong type: an id is not a UUID")
        .when(any_wrong(ids, TIMED, TIMED_UUID), "wrong type: an id is not a time-based UUID")
    )
    for number, column in enumerate(family.key[:-1]):
        reason = or_wrong_type(reason, column, events.ranged(number))
    return or_wrong_type(reason, source, events.source_told())


def _keys(events: EventColumns) -> list[Column]:
    value, family = F.col("v"), events.family
    good = F.col("reason").isNull() & F.col("echo").isNull()
    event = good & ~F.col("looked_again")
    deleted = event & value.op.isin("d", "r") & ~events.collects
    ids = _ids(events)
    # a range delete without a group does not say which rows it took
    told = deleted & ((value.op == "d") | ids[family.group.name].isNotNull())

    def of(again: str, from_event: Column) -> Column:
        return F.when(good & F.col("looked_again"), value.wake[again]).when(event, from_event)

    listing = F.when(good & F.col("looked_again"), F.lit(family.listing.name))
    return [
        *(of(name, column).alias(name) for name, column in ids.items()),
        of("deleted_from", F.when(told, value.source["table"])).alias("deleted_from"),
        of("deleted_at", F.when(told, value.source.ts_us)).alias("deleted_at"),
        F.col("looked_again"),
        F.coalesce(of("projection", F.lit(None)), listing).alias("projection"),
        of("suspected", F.lit(None)).alias("suspected"),
        of("oldest", value.source.ts_us).alias("written"),
        F.coalesce(event & events.is_truth, F.lit(False)).alias("from_truth"),
        F.when(event, _later(value.ts_ms, value.source.ts_us)).alias("capture_delay"),
        F.when(event & ~deleted, _expires_at(F.col("value"))).alias("expires_at"),
        F.col("reason"),
        *(F.when(~good, F.col(name)).alias(name) for name in _PLACE),
        F.when(F.col("reason").isNotNull(), F.substring("value", 1, BAD_RECORD_BYTES)).alias("raw"),
        F.col("echo"),
    ]


def _later(milliseconds: Column, micros: Column) -> Column:
    """How much later (µs); null beyond 64 bits, whose overflow would end the Spark query."""
    return F.try_subtract(F.try_multiply(milliseconds, F.lit(1000)), micros)


def _ids(events: EventColumns) -> dict[str, Column]:
    """The key and the source that an event names, in the order of `Family.named`.

    The bounds of a range delete give all key parts but the last, which is not known.
    """
    family = events.family
    found = {family.truth.source.name: F.coalesce(events.source_in_key(), events.source_told())}
    for number, column in enumerate(family.key):
        part = events.part(number)
        if number < len(family.key) - 1:
            part = F.coalesce(part, events.ranged(number).try_cast(_sql(column.type)))
        found[column.name] = part
    return {each.name: found[each.name] for each in family.named}


def _expires_at(value: Column) -> Column:
    """When the last cell of an event expires (µs); null if none was written with a TTL.

    The text is searched, because any column may have a TTL, and most events have none.
    """
    text = value.cast("string")
    times = F.regexp_extract_all(text, F.lit(_EXPIRY), F.lit(1))
    first, second = (text.contains(each) for each in _HAVE_EXPIRY)
    return F.when(first | second, F.array_max(times.cast("array<bigint>")))
