"""The keys of a slice on real Spark: each once, in shares of whole mailboxes."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from reconcilers.declared.families.message import MESSAGE
from streaming.pipeline.keys import grouper
from tests.spark.records import Record, event, keys
from tests.spark.test_envelope import canary

MAILBOXES = [f"11111111-0000-1000-8000-{number:012}" for number in range(8)]
UIDS = range(1, 4)


def changes() -> list[Record]:
    """Each row of some mailboxes changes twice, one mailbox after the other."""
    rows = [(mailbox, uid) for _ in range(2) for uid in UIDS for mailbox in MAILBOXES]
    return [
        event(
            "imapuidtable",
            "u",
            {"messageid": mailbox.replace("1111", "2222", 1), "mailboxid": mailbox, "uid": uid},
        )
        for mailbox, uid in rows
    ]


def shared(spark: SparkSession, shares: int) -> DataFrame:
    return grouper(MESSAGE)(keys(spark, MESSAGE, *changes()), shares)


@pytest.mark.parametrize("shares", [1, 3])
def test_each_key_comes_once_and_a_mailbox_in_one_share(spark: SparkSession, shares: int) -> None:
    found = shared(spark, shares).withColumn("share", F.spark_partition_id()).collect()
    places = [(str(row.mailboxid), int(row.uid)) for row in found]
    assert sorted(places) == [(mailbox, uid) for mailbox in MAILBOXES for uid in UIDS]
    assert {row.changes for row in found} == {2}
    for mailbox in MAILBOXES:
        of_it = [row for row in found if row.mailboxid == mailbox]
        assert len({row.share for row in of_it}) == 1
        assert [row.uid for row in of_it] == list(UIDS), "keys of one row follow each other"
    assert len({row.share for row in found}) == shares


@pytest.mark.parametrize(("shares", "shuffled"), [(1, False), (3, True)])
def test_one_share_needs_no_shuffle(spark: SparkSession, shares: int, shuffled: bool) -> None:
    plan = shared(spark, shares)._jdf.queryExecution().executedPlan().toString()
    assert ("Exchange" in plan) is shuffled


def test_all_canaries_of_a_slice_are_in_one_share(spark: SparkSession) -> None:
    """It is folded there, in the order of offsets."""
    canaries = [canary(number=number) for number in range(20)]
    decoded = keys(spark, MESSAGE, *changes(), *canaries)
    found = grouper(MESSAGE)(decoded, 3).withColumn("share", F.spark_partition_id()).collect()
    heard = [row.share for row in found if row.echo is not None]
    assert (len(heard), len(set(heard))) == (20, 1)
