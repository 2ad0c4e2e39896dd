"""`reconcile status`: the lag is what is not read yet, and a person sees what needs one."""

import json
from dataclasses import replace
from typing import Any

from checkpoints.lease import Holder
from streaming.commands.status import (
    REACHABLE,
    OpenCount,
    PartitionLag,
    Status,
    StreamStatus,
    as_json,
    as_text,
    lags,
)

CALM = Status("apache_james", 45.0, 5.0, REACHABLE, (), (), 0, 0, {}, None)
STREAM = StreamStatus(
    name="repair",
    last_settled="2026-11-21T10:00:00+00:00",
    lag=(
        PartitionLag("t", 0, end=10, read=7),
        PartitionLag("t", 1, end=10, read=10),
        PartitionLag("t", 2, end=4, read=None),
    ),
    records=3,
    seconds=12.4,
    holder=Holder("x", "mail1:77"),
)


def text(**changes: Any) -> str:
    return "\n".join(as_text(replace(CALM, **changes)))


def test_the_lag_is_what_is_not_read_yet() -> None:
    ends = {"b": {0: 5}, "a": {1: 7, 0: 9}}
    read = {"a": {0: 9, 1: 3}}
    assert [(each.topic, each.partition, each.records) for each in lags(ends, read)] == [
        ("a", 0, 0),
        ("a", 1, 4),
        ("b", 0, None),
    ]


def test_a_topic_that_was_made_anew_has_no_negative_lag() -> None:
    (only,) = lags({"a": {0: 2}}, {"a": {0: 40}})
    assert only.records == 0


def test_a_quiet_system_is_told_in_a_few_lines() -> None:
    assert text().splitlines() == [
        "keyspace apache_james: D = 45 s, W = 5 s",
        "watched since never: the stream has not run yet",
        "breakers closed",
        "no open findings",
    ]


def test_what_needs_a_person_is_told_with_the_command() -> None:
    finding = OpenCount("messages", "missing_row", "stuck", 3)
    told = text(stuck=3, findings=(finding,), breakers={"repairs": "1001 in a minute"})
    assert "breaker repairs is OPEN: 1001 in a minute" in told
    assert "`reconcile resume`" in told
    assert "3 stuck: `reconcile findings --state stuck`" in told


def test_a_silent_broker_is_told() -> None:
    assert "the lag is not known: no Kafka broker answers" in text(
        kafka="no Kafka broker answers at b:9092"
    )


def test_a_stream_tells_its_lag_and_who_runs_it() -> None:
    told = text(streams=(STREAM,))
    assert "repair stream: last settled 2026-11-21T10:00:00+00:00, run by mail1:77" in told
    assert "3 records wait, 12 s behind" in told
    assert "t/0: 3 of 10 wait" in told
    assert "t/1" not in told
    assert "t/2: nothing read yet, ends at 4" in told


def test_json_has_the_same_by_the_names_that_scripts_know() -> None:
    finding = OpenCount("messages", "missing_row", "stuck", 3)
    shown = as_json(replace(CALM, streams=(STREAM,), findings=(finding,)))
    told = json.loads(json.dumps(shown))
    assert list(told) == [
        *("keyspace", "delay", "window", "kafka", "streams", "findings", "stuck", "unresolved"),
        *("breakers", "watched_since"),
    ]
    assert told["findings"] == [
        {"projection": "messages", "kind": "missing_row", "state": "stuck", "open": 3}
    ]
    (stream,) = told["streams"]
    assert stream["holder"] == {"id": "x", "host": "mail1:77"}
    assert stream["lag"][0] == {"topic": "t", "partition": 0, "end": 10, "read": 7, "records": 3}
    assert stream["lag"][2]["records"] is None
