"""Which changes Spark samples: the rule is that of the pure sampler; nothing else is collected."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from pyspark.sql import SparkSession

from reconcilers.rows.sample import SampledChange, is_sampled
from reconcilers.words.model import Slot
from streaming.pipeline.sample_events import NAME, SampleReader
from tests.builders.rows import FAMILY, MAILBOX, MESSAGE_ID
from tests.spark.records import COLUMNS, KEYSPACE, Record, event

OTHER = {"messageid": str(MESSAGE_ID), "mailboxid": str(MAILBOX)}


def key(uid: int) -> dict[str, Any]:
    return {**OTHER, "uid": uid}


def sampled(spark: SparkSession, one_in: int, *records: Record) -> list[SampledChange]:
    changes = SampleReader(FAMILY, KEYSPACE, one_in, lambda _: None)
    return changes.read(spark.createDataFrame(records, COLUMNS))


def test_the_keys_are_those_of_the_pure_rule(spark: SparkSession) -> None:
    records = [event("imapuidtable", "u", key(uid)) for uid in range(1, 300)]
    found = sampled(spark, 10, *records)
    wanted = [uid for uid in range(1, 300) if is_sampled(json.dumps(key(uid)).encode(), 10)]
    assert 10 < len(wanted) < 60
    assert found == [SampledChange(Slot(MAILBOX, uid), MESSAGE_ID, 5_000_000) for uid in wanted]


def test_only_writes_of_whole_truth_rows_of_this_keyspace_are_sampled(spark: SparkSession) -> None:
    topic, partition, offset, *_ = good = event("imapuidtable", "i", key(1))
    elsewhere = (*good[:4], good[4].replace(KEYSPACE.encode(), b"another"))
    records = [
        event("messageidtable", "i", key(2)),
        event("imapuidtable", "d", key(3)),
        event("imapuidtable", "r", OTHER),
        event("imapuidtable", "i", {**key(4), "mailboxid": "no id"}),
        elsewhere,
        (topic, partition, offset, None, None),
        (topic, partition, offset, b"{", b"}"),
        (topic, partition, offset, good[3], None),
        good,
    ]
    assert sampled(spark, 1, *records) == [SampledChange(Slot(MAILBOX, 1), MESSAGE_ID, 5_000_000)]


def test_a_report_has_them_as_json(spark: SparkSession) -> None:
    taken: list[SampledChange] = []
    changes = SampleReader(FAMILY, KEYSPACE, 1, taken.extend)
    told = {"messageid": str(MESSAGE_ID), "mailboxid": str(MAILBOX), "uid": "7", "written": 5}
    changes.told({"observedMetrics": {NAME: {NAME: [told, {**told, "uid": "seven"}]}}})
    changes.told({})
    assert taken == [SampledChange(Slot(MAILBOX, 7), UUID(str(MESSAGE_ID)), 5)]
