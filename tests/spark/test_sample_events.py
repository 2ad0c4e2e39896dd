"""Which changes Spark samples: the rule is that of the pure sampler; nothing else is collected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from reconcilers.rows.sample import SampledBatch, SampledChange, is_sampled
from reconcilers.words.model import Slot
from streaming.pipeline import sample_events
from streaming.pipeline.sample_events import ALL, NAME, SampleReader
from tests.builders.rows import FAMILY, MAILBOX, MESSAGE_ID
from tests.spark.records import COLUMNS, KEYSPACE, Record, event

HANG_S = 120
OTHER = {"messageid": str(MESSAGE_ID), "mailboxid": str(MAILBOX)}


def key(uid: int) -> dict[str, Any]:
    return {**OTHER, "uid": uid}


def reader(one_in: int = 1) -> SampleReader:
    return SampleReader(FAMILY, KEYSPACE, one_in, lambda _: None)


def sampled(spark: SparkSession, one_in: int, *records: Record) -> list[SampledChange]:
    batch = reader(one_in).read(spark.createDataFrame(records, COLUMNS))
    return sorted(batch.changes, key=lambda each: int(str(each.slot.key[1])))


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


def test_of_more_than_the_limit_some_are_chosen_all_over_and_the_others_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [event("imapuidtable", "u", key(uid)) for uid in range(1, 301)]
    twice = spark.createDataFrame([*records, *records], COLUMNS)
    monkeypatch.setattr(sample_events, "MOST_KEYS", 60)
    batch = reader().read(twice.repartition(3))
    uids = {each.slot.key[1] for each in batch.changes}
    assert (len(batch.changes), len(uids), batch.left_out) == (60, 30, 540)
    assert 5 < len(uids & set(range(1, 151))) < 25
    assert {each.slot.key[1] for each in reader().read(twice.repartition(1)).changes} == uids


def test_a_stream_reports_the_changes_of_each_batch_up_to_the_limit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[SampledBatch] = []
    monkeypatch.setattr(sample_events, "MOST_OF_BATCH", 2)
    changes = SampleReader(FAMILY, KEYSPACE, 1, taken.append)
    records = [event("imapuidtable", "u", key(uid)) for uid in range(1, 6)]
    stored = spark.createDataFrame([*records, event("messageidtable", "i", key(9))], COLUMNS)
    stored.write.parquet(str(tmp_path / "records"))
    stream = spark.readStream.schema(stored.schema).parquet(str(tmp_path / "records"))
    observed = changes.observed(stream)
    assert observed.columns == stored.columns
    query = observed.writeStream.format("noop").trigger(availableNow=True).start()
    query.awaitTermination(HANG_S)
    changes.told(json.loads(query.recentProgress[-1].json))
    (batch,) = taken
    assert (len(batch.changes), batch.left_out) == (2, 3)


def test_a_report_has_them_as_json(spark: SparkSession) -> None:
    taken: list[SampledBatch] = []
    changes = SampleReader(FAMILY, KEYSPACE, 1, taken.append)
    told = {"messageid": str(MESSAGE_ID), "mailboxid": str(MAILBOX), "uid": "7", "written": 5}
    found = [told, {**told, "uid": "seven"}]
    changes.told({"observedMetrics": {NAME: {NAME: found, ALL: 12}}})
    changes.told({})
    change = SampledChange(Slot(MAILBOX, 7), UUID(str(MESSAGE_ID)), 5)
    assert taken == [SampledBatch((change,), left_out=10)]
