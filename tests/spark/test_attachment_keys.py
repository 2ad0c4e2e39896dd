"""Steps 1 and 2 on real Spark, for attachments: lists, references and rows name their keys."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reconcilers.declared.family import Family
from reconcilers.words.model import Wake, look_again
from tests.builders.attachments import ATTACHMENTS, MESSAGE, REFERENCES, place, reference_place
from tests.spark.records import event, keys, published, settled, wakes

LISTED = {
    "attachments": {"value": [{"id": "a"}], "deletion_ts": None, "set": True},
    "fullcontentoctets": {"value": 100, "deletion_ts": None, "set": True},
}
"""What an append sets, as the agent publishes it."""
GONE: dict[str, Any] = dict.fromkeys(LISTED)
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
        name = {"messageid": str(MESSAGE)}
        added, gone = event(table, "u", name, LISTED), event(table, "d", name, GONE)
        deleted = replace(bare, deleted_from=table, deleted_at=AT)
        assert set(wakes(spark, family, added, gone)) == {bare, deleted}


BOTH = pytest.mark.parametrize("family", [REFERENCES, ATTACHMENTS], ids=["references", "rows"])


@BOTH
def test_an_append_without_attachments_wakes_nothing(spark: SparkSession, family: Family) -> None:
    plain = {**LISTED, "attachments": None}
    key = {"messageid": str(MESSAGE)}
    appended = [event(table, op, key, plain) for table in ("messagev2", "messagev3") for op in "iu"]
    assert keys(spark, family, *appended).collect() == []


@BOTH
@pytest.mark.parametrize(
    "told",
    [{"value": None, "deletion_ts": 5_000_000, "set": True}, {"value": [], "set": True}],
    ids=["deleted", "without a value"],
)
def test_a_list_that_is_set_to_whatever_wakes_its_message(
    spark: SparkSession, family: Family, told: dict[str, Any]
) -> None:
    changed = event("messagev3", "u", {"messageid": str(MESSAGE)}, {"attachments": told})
    assert [each.source for each in wakes(spark, family, changed)] == [MESSAGE]


@BOTH
def test_an_event_without_cells_wakes_its_message_and_a_bad_one_is_kept(
    spark: SparkSession, family: Family
) -> None:
    topic, number, offset, name, text = event("messagev3", "u", {"messageid": str(MESSAGE)})
    value = {**json.loads(text), "after": None}
    bare = (topic, number, offset, name, json.dumps(value).encode())
    assert [each.source for each in wakes(spark, family, bare)] == [MESSAGE]
    (bad,) = settled(spark, family, event("messagev3", "u", {}, GONE)).bad
    assert bad["reason"] == "missing key"


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
