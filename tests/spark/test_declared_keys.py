"""Steps 1 and 2 on real Spark, for keys as they are declared: whatever a column is called."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from pyspark.sql import SparkSession

from reconcilers.capture.frontier import CANARY_TABLE
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family
from reconcilers.words.model import PUBLISHED, Kind, Wake, look_again
from streaming.pipeline.sources import perhaps_wanted
from tests.builders.answered import ANSWERED, WITH_ANSWERED
from tests.builders.rights import BOB, FROM_EVENTS, LISTED, RIGHTS, SHARED, place
from tests.builders.rows import MAILBOX, MESSAGE_ID, SLOT
from tests.spark.records import (
    COLUMNS,
    Record,
    bound,
    event,
    keys,
    published,
    ranged,
    settled,
    wakes,
)

# --- a key of (text, timeuuid) -------------------------------------------------------------------


def of_list(**key: object) -> dict[str, Any]:
    return {"id": str(SHARED), **key}


DELETES: dict[str, tuple[Record, Any, UUID | None, str | None]] = {
    "a row": (event("aclv2", "d", of_list(key=BOB)), (BOB, SHARED), SHARED, "aclv2"),
    "a partition": (event("aclv2", "d", of_list()), (None, SHARED), SHARED, "aclv2"),
    "a slice": (
        ranged("aclv2", of_list(), bound(key="a"), bound(key="b")),
        (None, SHARED),
        SHARED,
        None,
    ),
    "a range of one": (
        ranged("aclv2", of_list(), bound(key="a"), bound(key="a")),
        ("a", SHARED),
        SHARED,
        "aclv2",
    ),
    "a group": (
        event("usermailboxacl", "d", {"username": BOB}),
        (BOB, None),
        None,
        "usermailboxacl",
    ),
    "a row of the projection": (
        event("usermailboxacl", "d", {"username": BOB, "mailboxid": str(SHARED)}),
        (BOB, SHARED),
        SHARED,
        "usermailboxacl",
    ),
}


def test_a_delete_names_what_it_took(spark: SparkSession) -> None:
    rows = keys(spark, RIGHTS, *(each[0] for each in DELETES.values())).collect()
    for row, (case, (_record, key, source, told)) in zip(rows, DELETES.items(), strict=True):
        named = (row.username, row.mailboxid, row.id, row.deleted_from, row.reason)
        text = (None if part is None else str(part) for part in (*key, source))
        assert named == (*text, told, None), case


def test_both_sides_of_a_family_name_its_key_each_in_its_own_words(spark: SparkSession) -> None:
    """They are one key, which two events woke."""
    truth = event("aclv2", "i", of_list(key=BOB))
    row = event("usermailboxacl", "u", {"username": BOB, "mailboxid": str(SHARED)})
    (wake,) = wakes(spark, RIGHTS, truth, row)
    assert wake == Wake((BOB, SHARED), SHARED, 5_000_000, from_truth=True, changes=2)


def test_bad_records_have_a_reason(spark: SparkSession) -> None:
    found = settled(
        spark,
        RIGHTS,
        event("aclv2", "i", of_list()),
        event("aclv2", "i", {"id": "no-uuid", "key": BOB}),
        event("usermailboxacl", "i", {"mailboxid": str(SHARED)}),
    )
    assert sorted(each["reason"] for each in found.bad) == [
        "missing key",
        "missing key",
        "wrong type: an id is not a UUID",
    ]


# --- a truth whose rows are derived --------------------------------------------------------------


def of_aggregate(aggregateid: str, **key: object) -> dict[str, Any]:
    return {"aggregateid": aggregateid, **key}


def test_an_event_of_a_list_names_its_mailbox_and_one_of_its_row_the_name(
    spark: SparkSession,
) -> None:
    """A row that is deleted with its whole partition leads to all rows of the mailbox."""
    records = (
        event("eventstore", "i", of_aggregate(str(SHARED), eventid=0)),
        event("eventstore", "i", of_aggregate("FilterRule/x", eventid=0)),
        event("aclv2", "u", of_list(key=BOB)),
        event("aclv2", "d", of_list()),
    )
    found = {(*each.key, each.from_truth, each.source) for each in wakes(spark, LISTED, *records)}
    assert found == {
        (SHARED, None, True, SHARED),
        (SHARED, BOB, False, SHARED),
        (SHARED, None, False, SHARED),
    }


def test_an_event_of_a_derived_truth_names_its_source_alone(spark: SparkSession) -> None:
    key = of_aggregate(str(SHARED), eventid=3)
    added, gone = event("eventstore", "i", key), event("eventstore", "d", of_aggregate(str(SHARED)))
    bare = Wake((None, SHARED), SHARED, 5_000_000, from_truth=True)
    deleted = replace(bare, deleted_from="eventstore", deleted_at=5_000_000)
    assert set(wakes(spark, FROM_EVENTS, added, gone)) == {bare, deleted}
    row = event("usermailboxacl", "u", {"username": BOB, "mailboxid": str(SHARED)})
    assert wakes(spark, FROM_EVENTS, row) == [Wake((BOB, SHARED), SHARED, 5_000_000)]


def test_events_of_what_is_no_source_are_left_out(spark: SparkSession) -> None:
    others = ("FilteringAggregateId/bob", "62b63a6d-1a4b-4b8e-9c0e-0a2f3b9f4d11", "")
    records = [event("eventstore", "i", of_aggregate(each, eventid=0)) for each in others]
    assert keys(spark, FROM_EVENTS, *records).collect() == []
    (bad,) = settled(spark, FROM_EVENTS, event("eventstore", "i", {"eventid": 0})).bad
    assert bad["reason"] == "missing key"


# --- what is published comes back ----------------------------------------------------------------

ALL_TOLD = {
    "oldest": 1,
    "deleted_from": "aclv2",
    "deleted_at": 2,
    "projection": "user_rights",
    "suspected": Kind.EXTRA_ROW,
}


def test_every_published_field_of_a_wake_comes_back(spark: SparkSession) -> None:
    assert set(ALL_TOLD) == set(PUBLISHED)
    sent = replace(look_again(place(), "", SHARED), **ALL_TOLD)  # type: ignore[arg-type]
    part = replace(sent, key=(None, SHARED), source=None)
    both = [published(RIGHTS, sent), published(RIGHTS, part)]
    assert set(wakes(spark, RIGHTS, *both)) == {sent, part}


def test_a_published_record_comes_back_as_it_was_meant(spark: SparkSession) -> None:
    """A record of an earlier release may be unread when a new one starts: its text is frozen."""
    value = (
        b'{"family": "message", "wake": {"mailboxid": "11111111-0000-1000-8000-000000000001",'
        b' "messageid": "22222222-0000-1000-8000-000000000002", "uid": 7, "oldest": 5,'
        b' "deleted_from": null, "deleted_at": null, "projection": "messages",'
        b' "suspected": "missing_row"}}'
    )
    sent = look_again(SLOT, "messages", MESSAGE_ID, 5, Kind.MISSING_ROW)
    topic, partition, offset, key, ours = published(MESSAGE, sent)
    assert (ours, key) == (value, f"{MAILBOX}/7".encode())
    assert wakes(spark, MESSAGE, (topic, partition, offset, key, value)) == [sent]


def test_messages_are_told_apart_by_the_columns_of_old_in_their_order(spark: SparkSession) -> None:
    """A checkpoint keeps them: in another order it could not be gone on from."""
    record = event("messageidtable", "d", {"mailboxid": str(MAILBOX)})
    assert keys(spark, MESSAGE, record).columns[:9] == [
        "mailboxid",
        "messageid",
        "uid",
        "deleted_from",
        "deleted_at",
        "looked_again",
        "projection",
        "suspected",
        "written",
    ]


# --- a projection with a key column of its own name ----------------------------------------------


def test_a_projection_s_own_column_is_the_uid(spark: SparkSession) -> None:
    key = {"mailboxid": str(MAILBOX), "answered_uid": 7}
    added, deleted, bad = keys(
        spark,
        WITH_ANSWERED,
        event(ANSWERED.table, "i", key),
        event(ANSWERED.table, "d", key),
        event(ANSWERED.table, "i", {"mailboxid": str(MAILBOX), "uid": 7}),
    ).collect()
    assert (added.mailboxid, added.uid, added.reason) == (str(MAILBOX), 7, None)
    assert (deleted.uid, deleted.deleted_from) == (7, ANSWERED.table)
    assert bad.reason == "missing key"


def test_each_family_reads_its_own_published_keys_and_the_first_keeps_what_is_nobodys(
    spark: SparkSession,
) -> None:
    message, right = look_again(SLOT, "messages", MESSAGE_ID), look_again(place(), "user_rights")
    ours, theirs = published(MESSAGE, message), published(FROM_EVENTS, right)
    *where, value = ours
    nobodys = (*where, value.replace(b'"message"', b'"nobody"'))
    unnamed = event("imapuidtable", "i", {})
    unnamed = (*unnamed[:-1], b"{}")
    records = (ours, theirs, nobodys, unnamed)
    first, other = settled(spark, MESSAGE, *records), settled(spark, FROM_EVENTS, *records)
    assert list(first.wakes(MESSAGE)) == [message]
    assert list(other.wakes(FROM_EVENTS)) == [right]
    reasons = [each["reason"] for each in first.bad]
    assert len(reasons) == 2
    assert "unknown family" in reasons
    assert other.bad == []


def test_the_text_of_a_record_tells_which_families_need_not_read_it(spark: SparkSession) -> None:
    records = {
        "events": event("eventstore", "i", of_aggregate(str(SHARED), eventid=0)),
        "row": event("usermailboxacl", "u", {"username": BOB, "mailboxid": str(SHARED)}),
        "published": published(FROM_EVENTS, look_again(place(), "user_rights")),
        "canary": event(CANARY_TABLE, "i", {"place": "james/0", "lane": 0}),
        "message": event("imapuidtable", "i", {"messageid": str(MESSAGE_ID)}),
        "malformed": (*event("imapuidtable", "i", {})[:-1], b"{"),
    }
    given = spark.createDataFrame(list(records.values()), COLUMNS)

    def read(family: Family) -> int:
        return given.where(perhaps_wanted(family)).count()

    assert read(MESSAGE) == len(records)
    assert read(FROM_EVENTS) == len(records) - len(("message", "malformed"))
