"""Records as Kafka holds them, through step 2, to wakes."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from reconcilers.declared.family import Family
from reconcilers.words.model import Wake
from streaming.pipeline.arrow import SettledKeys
from streaming.pipeline.envelope import decoder
from streaming.pipeline.keys import grouper
from streaming.topics.publish import suspect_record

KEYSPACE, SUSPECTS = "apache_james", "reconciler.apache_james.suspects"
TOPIC, CANARIES = "james", "reconciler_canary"
COLUMNS = "topic string, partition int, offset long, key binary, value binary"

Event = dict[str, Any]
Record = tuple[Any, ...]


def event(table: str, op: str, key: Event, after: Event | None = None) -> Record:
    """What the agent publishes of a change, written at 5 s and captured at 6 s."""
    source = {"ts_us": 5_000_000, "keyspace": KEYSPACE, "table": table}
    value = {"op": op, "ts_ms": 6_000, "source": source, "after": after or {}}
    text = json.dumps(value, separators=(",", ":"))
    return TOPIC, 0, 1, json.dumps(key).encode(), text.encode()


def bound(**values: str) -> Event:
    """One bound of a range delete."""
    return {"values": [{"name": name, "value": value} for name, value in values.items()]}


def ranged(table: str, key: Event, start: Event, end: Event) -> Record:
    """A range delete."""
    return event(table, "r", key, {"_range_start": start, "_range_end": end})


def published(family: Family, wake: Wake) -> Record:
    """A key as it stands in the suspects topic."""
    return SUSPECTS, 0, 1, *suspect_record(family, wake)


def keys(spark: SparkSession, family: Family, *records: Record) -> DataFrame:
    """What is decoded of them."""
    decode = decoder(family, KEYSPACE, SUSPECTS, CANARIES)
    return decode(spark.createDataFrame(records, COLUMNS))


def settled(spark: SparkSession, family: Family, *records: Record) -> SettledKeys:
    """The keys as a worker gets them."""
    rows = grouper(family)(keys(spark, family, *records), 1).collect()
    return SettledKeys.of(pa.RecordBatch.from_pylist([row.asDict() for row in rows]))


def wakes(spark: SparkSession, family: Family, *records: Record) -> list[Wake]:
    """The keys that come out; none of the records may be a bad one."""
    found = settled(spark, family, *records)
    assert found.bad == []
    return list(found.wakes(family))
