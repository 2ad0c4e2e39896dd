"""Steps 1 and 2 on real Spark, for attachments: lists, references and rows name their keys."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from reconcilers.declared.family import Family
from reconcilers.words.model import Wake, look_again
from tests.builders.attachments import ATTACHMENTS, MESSAGE, REFERENCES, place, reference_place
from tests.spark.records import event, published, settled, wakes

PLACE, OF_TEXT = place(), reference_place()
AT = 5_000_000


@pytest.mark.parametrize(
    ("family", "key"),
    [(REFERENCES, (None, str(MESSAGE))), (ATTACHMENTS, (None,))],
    ids=["references", "rows"],
)
def test_a_list_in_either_table_names_its_message_alone(
    spark: SparkSession, family: Family, key: tuple[str | None, ...]
) -> None:
    bare = Wake(key, MESSAGE, AT, from_truth=True)
    for table in ("messagev2", "messagev3"):
        added, gone = (event(table, op, {"messageid": str(MESSAGE)}) for op in "ud")
        deleted = replace(bare, deleted_from=table, deleted_at=AT)
        assert set(wakes(spark, family, added, gone)) == {bare, deleted}


def test_a_reference_names_its_message_in_its_key(spark: SparkSession) -> None:
    attachment, message = OF_TEXT.key
    key = {"attachmentidasuuid": str(attachment), "messageid": message}
    (wake,) = wakes(spark, REFERENCES, event("attachmentmessageid", "i", key))
    assert wake == Wake(OF_TEXT.key, MESSAGE, AT)
    broken = event("attachmentmessageid", "i", {**key, "messageid": "abc"})
    (bad,) = settled(spark, REFERENCES, broken).bad
    assert bad["reason"] == "wrong type: messageid is not a UUID"


def test_a_row_names_its_message_in_a_cell(spark: SparkSession) -> None:
    key = {"idasuuid": str(PLACE.group)}
    named = {"message_id": {"value": str(MESSAGE), "deletion_ts": None, "set": True}}
    added = event("attachmentv2", "i", key, named)
    assert wakes(spark, ATTACHMENTS, added) == [Wake(PLACE.key, MESSAGE, AT)]
    (gone,) = wakes(spark, ATTACHMENTS, event("attachmentv2", "d", key))
    assert gone == Wake(PLACE.key, None, AT, deleted_from="attachmentv2", deleted_at=AT)


def test_a_published_key_comes_back(spark: SparkSession) -> None:
    for family, slot in ((REFERENCES, OF_TEXT), (ATTACHMENTS, PLACE)):
        sent = look_again(slot, family.listing.name, MESSAGE, AT)
        assert wakes(spark, family, published(family, sent)) == [sent]
