"""Step 2 on real Spark, without Kafka: which key each shape of event leads to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import keeping
from streaming.canary.alone import CanariesAlone
from streaming.pipeline.envelope import decoder
from streaming.topics import Record as KafkaRecord
from streaming.topics import came_astray
from streaming.topics.formats import has_schema, is_binary
from tests.spark.records import settled

KEYSPACE, SUSPECTS = "apache_james", "reconciler.apache_james.suspects"
TOPIC, CANARIES = "james", "reconciler_canary"
MAILBOX = "11111111-0000-1000-8000-000000000001"
MESSAGEID = "22222222-0000-1000-8000-000000000002"
TRUTH, PROJECTION = "imapuidtable", "messageidtable"
RECORDS = "topic string, partition int, offset long, key binary, value binary"

Event = dict[str, Any]


def event(
    table: str, op: str, key: Event, after: Event | None = None, keyspace: str = KEYSPACE
) -> tuple[Any, ...]:
    source = {"ts_us": 5_000_000, "keyspace": keyspace, "table": table}
    value = {"op": op, "ts_ms": 6_000, "source": source, "after": after or {}}
    text = json.dumps(value, separators=(",", ":"))
    return TOPIC, 0, 1, json.dumps(key).encode(), text.encode()


def decoded(spark: SparkSession, *records: tuple[Any, ...]) -> list[Row]:
    family = keeping(MESSAGE, [each.name for each in MESSAGE.projections])
    decode = decoder(family, KEYSPACE, SUSPECTS, CANARIES)
    return decode(spark.createDataFrame(records, RECORDS)).collect()


def bound(**values: str) -> Event:
    return {"values": [{"name": name, "value": value} for name, value in values.items()]}


def ranged(table: str, key: Event, start: Event, end: Event) -> tuple[Any, ...]:
    return event(table, "r", key, {"_range_start": start, "_range_end": end})


def test_a_range_delete_names_the_mailbox_that_both_its_bounds_name(spark: SparkSession) -> None:
    here = bound(mailboxid=MAILBOX)
    (row,) = decoded(spark, ranged(TRUTH, {"messageid": MESSAGEID}, here, here))
    assert (row.mailboxid, row.messageid, row.uid) == (MAILBOX, MESSAGEID, None)
    assert (row.deleted_from, row.deleted_at) == (TRUTH, 5_000_000)


def test_a_slice_of_a_message_wakes_it_and_is_no_evidence(spark: SparkSession) -> None:
    """Which rows it took is not known; nor do bounds without a mailbox stop the stream."""
    here, nowhere, uids = bound(mailboxid=MAILBOX), bound(), bound(uid="5")
    for start, end in ((here, nowhere), (nowhere, here), (uids, nowhere), (nowhere, nowhere)):
        (row,) = decoded(spark, ranged(TRUTH, {"messageid": MESSAGEID}, start, end))
        assert (row.mailboxid, row.messageid, row.reason) == (None, MESSAGEID, None)
        assert (row.deleted_from, row.deleted_at) == (None, None)


def test_a_range_of_a_mailbox_and_a_partition_name_what_they_took(spark: SparkSession) -> None:
    uids = ranged(PROJECTION, {"mailboxid": MAILBOX}, bound(uid="5"), bound())
    whole = event(TRUTH, "d", {"messageid": MESSAGEID})
    mailbox, message = decoded(spark, uids, whole)
    assert (mailbox.mailboxid, mailbox.uid, mailbox.deleted_from) == (MAILBOX, None, PROJECTION)
    assert (message.mailboxid, message.messageid, message.deleted_from) == (None, MESSAGEID, TRUTH)


def test_bounds_that_name_no_uuid_are_a_bad_record(spark: SparkSession) -> None:
    bad = bound(mailboxid="not-a-uuid")
    (row,) = decoded(spark, ranged(TRUTH, {"messageid": MESSAGEID}, bad, bad))
    assert row.reason == "wrong type: mailboxid is not a UUID"
    assert row.mailboxid is None


def test_recent_uids_are_spelled_as_the_mail_server_does(spark: SparkSession) -> None:
    (row,) = decoded(
        spark, event("mailboxrecents", "i", {"mailboxid": MAILBOX, "recent_mesage_uid": 7})
    )
    assert (row.mailboxid, row.uid, row.reason) == (MAILBOX, 7, None)


def test_the_last_expiry_of_a_cell_is_told_and_that_of_a_delete_is_not(
    spark: SparkSession,
) -> None:
    key = {"messageid": MESSAGEID, "mailboxid": MAILBOX, "uid": 1}
    soon, late = 1_900_000_000_000_000, 2_100_000_000_000_000
    cells = {
        "flagseen": {"value": True, "deletion_ts": soon, "set": True},
        "modseq": {"value": 1, "deletion_ts": late, "set": True},
        "threadid": {"value": None, "deletion_ts": None, "set": True},
    }
    written, far, plain, deleted = decoded(
        spark,
        event(TRUTH, "u", key, cells),
        event(TRUTH, "u", key, {"modseq": cells["modseq"]}),
        event(TRUTH, "u", key, {"threadid": cells["threadid"]}),
        event(TRUTH, "d", key, cells),
    )
    assert (written.expires_at, far.expires_at) == (late, late)
    assert (plain.expires_at, deleted.expires_at) == (None, None)


@pytest.mark.parametrize("lost", ["ts_ms", "ts_us"])
def test_an_event_without_one_of_its_times_is_a_bad_record(spark: SparkSession, lost: str) -> None:
    topic, partition, offset, key, value = event(TRUTH, "d", {"messageid": MESSAGEID})
    changed = value.replace(f'"{lost}"'.encode(), b'"other"')
    (row,) = decoded(spark, (topic, partition, offset, key, changed))
    assert (row.reason, row.messageid) == ("no write time: not an event", None)


def test_what_is_looked_at_again_without_a_projection_is_of_the_first(spark: SparkSession) -> None:
    def suspect(**wake: object) -> tuple[Any, ...]:
        value = {"family": "message", "wake": {"mailboxid": MAILBOX, "uid": 7, **wake}}
        return SUSPECTS, 0, 1, b"", json.dumps(value).encode()

    unnamed, named = decoded(spark, suspect(), suspect(projection="unseen_uids"))
    assert (unnamed.projection, named.projection) == ("messages", "unseen_uids")
    (changed,) = decoded(spark, event(TRUTH, "d", {"messageid": MESSAGEID}))
    assert changed.projection is None


@pytest.mark.parametrize(
    ("topic", "again"),
    [
        (SUSPECTS, True),
        ("reconciler.suspects", False),
        ("reconciler.other.suspects", False),
    ],
)
def test_keys_on_our_topic_alone_are_looked_at_again(
    spark: SparkSession, topic: str, again: bool
) -> None:
    value = {"family": "message", "wake": {"mailboxid": MAILBOX, "uid": 7}}
    (row,) = decoded(spark, (topic, 0, 1, b"", json.dumps(value).encode()))
    assert (row.looked_again, row.reason is None) == (again, again)


def absurd(ts_ms: int, ts_us: int) -> tuple[Any, ...]:
    """A row's delete that was captured and written at these times."""
    topic, partition, offset, key, value = event(
        TRUTH, "d", {"messageid": MESSAGEID, "mailboxid": MAILBOX, "uid": 1}
    )
    told = json.loads(value)
    told["ts_ms"], told["source"]["ts_us"] = ts_ms, ts_us
    return topic, partition, offset, key, json.dumps(told).encode()


@pytest.mark.parametrize(
    ("ts_ms", "ts_us"),
    [
        (2**63 - 1, 5_000_000),
        (-(2**63), 5_000_000),
        (2**53, -(2**63) + 1),
        (6_000, -(2**63)),
    ],
)
def test_an_absurd_time_costs_its_own_measurement_only(
    spark: SparkSession, ts_ms: int, ts_us: int
) -> None:
    sound = event(TRUTH, "d", {"messageid": MESSAGEID, "mailboxid": MAILBOX, "uid": 2})
    strange, plain = decoded(spark, absurd(ts_ms, ts_us), sound)
    assert (strange.capture_delay, strange.reason, strange.uid) == (None, None, 1)
    assert (strange.written, strange.deleted_at) == (ts_us, ts_us)
    assert (plain.capture_delay, plain.uid) == (1_000_000, 2)


def test_a_time_beyond_64_bits_is_a_bad_record(spark: SparkSession) -> None:
    strange, plain = decoded(spark, absurd(2**63, 5_000_000), absurd(6_000, 5_000_000))
    assert strange.reason == "malformed JSON or wrong types"
    assert plain.reason is None


RANDOM = "22222222-0000-4000-8000-000000000002"
NOT_TIMED = "wrong type: an id is not a time-based UUID"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (event(TRUTH, "i", {"messageid": RANDOM, "mailboxid": MAILBOX, "uid": 1}), NOT_TIMED),
        (event(TRUTH, "d", {"messageid": RANDOM}), NOT_TIMED),
        (event(PROJECTION, "i", {"mailboxid": RANDOM, "uid": 1}), NOT_TIMED),
        (
            event(
                PROJECTION, "u", {"mailboxid": MAILBOX, "uid": 1}, {"messageid": {"value": RANDOM}}
            ),
            "wrong type: messageid is not a time-based UUID",
        ),
        (
            ranged(
                TRUTH,
                {"messageid": MESSAGEID},
                bound(mailboxid=RANDOM),
                bound(mailboxid=RANDOM),
            ),
            "wrong type: mailboxid is not a time-based UUID",
        ),
    ],
)
def test_an_id_that_cassandra_would_refuse_is_a_bad_record(
    spark: SparkSession, record: tuple[Any, ...], reason: str
) -> None:
    (row,) = decoded(spark, record)
    assert (row.reason, row.messageid, row.mailboxid) == (reason, None, None)


def test_a_published_key_with_such_an_id_is_a_bad_record(spark: SparkSession) -> None:
    value = {"family": "message", "wake": {"mailboxid": MAILBOX, "messageid": RANDOM, "uid": 7}}
    (row,) = decoded(spark, (SUSPECTS, 0, 1, b"", json.dumps(value).encode()))
    assert row.reason == NOT_TIMED


# --- one topic for all tables ---------------------------------------------------------------------

MINE = {"mailboxid": MAILBOX, "uid": 7}
CANARY = {"place": "a node/0", "lane": 3}


def cell(value: object) -> Event:
    return {"value": value, "deletion_ts": None, "set": True}


def canary(op: str = "i", key: Event = CANARY, **cells: object) -> tuple[Any, ...]:
    told: Event = {
        "number": 17,
        "previous": 16,
        "steady": True,
        "idle_us": 16,
        "written_ms": 18,
        "partitions": 2,
        **cells,
    }
    after = {name: None if value is None else cell(value) for name, value in told.items()}
    return event("canary", op, key, {**after, "_range_start": None}, CANARIES)


@pytest.mark.parametrize(
    "foreign",
    [
        event(PROJECTION, "i", MINE, keyspace="another"),
        event("acl", "u", {"id": MAILBOX}, {"acl": cell("{}")}),
        event("people", "u", {"uid": "seven"}, {"messageid": cell({"a": [1]})}, "crm"),
        event("people", "x", {"uid": "seven"}, {"messageid": "no cell"}, "crm"),
        event("other", "i", CANARY, {"number": cell(1)}, CANARIES),
        event("canary", "i", CANARY, {"number": cell(1)}, "another"),
    ],
)
def test_an_event_of_no_table_of_ours_is_left_out(
    spark: SparkSession, foreign: tuple[Any, ...]
) -> None:
    (row,) = decoded(spark, foreign, event(PROJECTION, "i", MINE))
    assert (row.uid, row.reason, row.echo) == (7, None, None)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{not json", "malformed JSON or wrong types"),
        (b'{"op": "i", "source": 5}', "malformed JSON or wrong types"),
        (b'{"op": "i", "ts_ms": 1, "after": {}}', "no write time: not an event"),
        (
            b'{"op": "i", "ts_ms": 1, "source": {"ts_us": 1, "table": "imapuidtable"}}',
            "unknown table",
        ),
        (b'{"op": "i", "ts_ms": 1, "source": {"ts_us": 1, "keyspace": "crm"}}', "unknown table"),
    ],
)
def test_what_does_not_say_of_which_table_it_is_is_a_bad_record(
    spark: SparkSession, value: bytes, reason: str
) -> None:
    (row,) = decoded(spark, (TOPIC, 1, 5, b"{}", value))
    assert (row.reason, row.topic, row.partition, row.offset) == (reason, TOPIC, 1, 5)
    assert (bytes(row.raw), row.echo) == (value, None)


def wrapped(part: bytes) -> bytes:
    """As a converter writes it that adds its schema, Kafka Connect's default."""
    return b'{"schema":{"type":"struct"},"payload":%s}' % part


@pytest.mark.parametrize("sound", [event(PROJECTION, "i", MINE), canary()])
def test_a_record_of_another_converter_names_the_setting_that_mends_it(
    spark: SparkSession, sound: tuple[Any, ...]
) -> None:
    *place, key, value = sound
    rows = decoded(
        spark,
        (*place, wrapped(key), wrapped(value)),
        (*place, key, b"\0\0\0\0\1" + value),
    )
    assert [row.reason for row in rows] == [has_schema("value"), is_binary("value")]
    assert [row.echo for row in rows] == [None, None]


def test_so_does_one_whose_key_alone_is_of_another_converter(spark: SparkSession) -> None:
    *place, key, value = event(PROJECTION, "i", MINE)
    rows = decoded(spark, (*place, wrapped(key), value), (*place, b"\0\0\0\0\1" + key, value))
    assert [row.reason for row in rows] == [has_schema("key"), is_binary("key")]


def test_a_canary_is_its_echo_and_nothing_else(spark: SparkSession) -> None:
    (row,) = decoded(spark, canary())
    told = {"topic": TOPIC, "partition": 0, "offset": 1, "echo": "a node/0|3|2|17|16|true|16|18000"}
    rest = {"looked_again": False, "from_truth": False}
    assert {name: value for name, value in row.asDict().items() if value is not None} == {
        **told,
        **rest,
    }


def test_the_first_canary_may_have_none_before_it(spark: SparkSession) -> None:
    rows = decoded(spark, canary(previous=0), canary("u", previous=None, steady=None))
    assert [row.echo for row in rows] == [
        "a node/0|3|2|17|0|true|16|18000",
        "a node/0|3|2|17|0|false|16|18000",
    ]


def test_a_canary_that_was_deleted_or_has_no_number_is_none(spark: SparkSession) -> None:
    away = canary("d", number=None), canary("r"), canary(number=None), canary(key={"lane": 3})
    strange = canary(number="x"), canary(number=2**63), canary(key={"place": "a|b", "lane": 3})
    (row,) = decoded(spark, *away, *strange, canary(number=18))
    assert row.echo == "a node/0|3|2|18|16|true|16|18000"


@pytest.mark.parametrize("written", [None, "x", 2**62])
def test_a_canary_without_a_time_that_can_be_read_is_not_dated(
    spark: SparkSession, written: object
) -> None:
    (row,) = decoded(spark, canary(written_ms=written))
    assert row.echo == "a node/0|3|2|17|16|true|16|0"


@pytest.mark.parametrize("steady", [True, False])
def test_the_driver_hears_what_the_workers_hear(spark: SparkSession, steady: bool) -> None:
    """Slices of canaries alone are not decoded by Spark (`streaming.canary.alone`)."""
    record = canary(steady=steady)
    by_workers = settled(spark, MESSAGE, record).echoes
    by_driver = CanariesAlone(lambda ranges: [KafkaRecord(*record)], TOPIC, CANARIES, came_astray)
    assert len(by_workers) == 1
    assert by_driver.heard({(TOPIC, 0): (1, 2)}) == by_workers


def test_a_good_event_has_no_echo_and_a_bad_one_of_ours_is_still_a_bad_record(
    spark: SparkSession,
) -> None:
    good, bad = decoded(spark, event(PROJECTION, "i", MINE), event(PROJECTION, "x", MINE))
    assert (good.echo, good.topic, good.uid) == (None, None, 7)
    assert (bad.echo, bad.topic, bad.reason) == (None, TOPIC, "unknown op")


@pytest.mark.parametrize("op", ["i", "u", "d"])
def test_a_row_that_collects_names_its_mailbox_as_a_whole(spark: SparkSession, op: str) -> None:
    """The set in the event cannot be trusted, and its delete took no message."""
    change = event("applicableflag", op, {"mailboxid": MAILBOX}, {"userflags": {"value": ["a"]}})
    (row,) = decoded(spark, change)
    assert (row.mailboxid, row.uid, row.messageid, row.reason) == (MAILBOX, -1, None, None)
    assert (row.deleted_from, row.deleted_at, row.looked_again) == (None, None, False)
    (bad,) = decoded(spark, event("applicableflag", op, {}))
    assert bad.reason == "missing key"
