"""Records that cannot be examined are kept with their reason, and the stream goes on.

All bad records are published first, each with a text of its own to be found by.
"""

import json
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.stack.scenes import Place, Scene, cells, now_us
from tests.stack.streams import until

pytestmark = pytest.mark.stack

TRUTH, PROJECTION = "imapuidtable", "messageidtable"


def key(table: str, **changes: Any) -> dict[str, Any]:
    """The key of an event, as the agent writes it."""
    ids = Place().ids if table == TRUTH else {"mailboxid": uuid.uuid1(), "uid": 1}
    sound = {name: value if name == "uid" else str(value) for name, value in ids.items()}
    return {name: value for name, value in (sound | changes).items() if value is not LEFT_OUT}


def event(scene: Scene, table: str, **changes: Any) -> dict[str, Any]:
    """The value of an insert's event, as the agent writes it, ``changes`` by its members."""
    at = now_us()
    source = {"ts_us": at, "keyspace": scene.keyspace, "table": table, "snapshot": "false"}
    sound: dict[str, Any] = {
        "ts_ms": at // 1000,
        "op": "i",
        "source": source,
        "after": {"modseq": {"value": 1, "deletion_ts": None, "set": True}},
    }
    for name, value in changes.items():
        if isinstance(value, Mapping):
            sound[name] = sound[name] | value
        else:
            sound[name] = value
    return sound


LEFT_OUT = object()
FOREIGN = "of another application"
NO_UUID = "not-a-uuid"
MALFORMED = "malformed JSON or wrong types"
NO_EVENT = "no write time: not an event"
NO_ID = "wrong type: an id is not a UUID"


@dataclass(frozen=True)
class Bad:
    """A bad record: what is wrong, and the reason that it must be kept with."""

    what: str
    reason: str
    table: str
    key: bytes | None
    value: bytes


NO_MAILBOX = {"values": [{"name": "mailboxid", "value": NO_UUID}]}


def bad_records(scene: Scene) -> list[Bad]:
    sound = key(TRUTH)
    changed = partial(event, scene, TRUTH)
    other_message = {"messageid": {"value": NO_UUID, "set": True}}
    in_truth: list[tuple[str, str, object, object]] = [
        ("malformed JSON", MALFORMED, sound, b'{"op": "i", malformed JSON'),
        ("cut short", MALFORMED, sound, b'{"cut short": {"op": "i"'),
        ("write time is text", MALFORMED, sound, changed(source={"ts_us": "soon"})),
        ("no object", MALFORMED, sound, b'"no object"'),
        ("another's record", NO_EVENT, sound, {"hello": 1}),
        ("no source", NO_EVENT, sound, changed(source=None)),
        ("source without table", "unknown table", sound, changed(source={"table": None})),
        ("source without space", "unknown table", sound, changed(source={"keyspace": None})),
        ("unknown op", "unknown op", sound, changed(op="x")),
        ("no op", "unknown op", sound, changed(op=None)),
        ("no key", "malformed key", None, changed()),
        ("malformed key", "malformed key", b"{{", changed()),
        ("uid is text", "malformed key", key(TRUTH, uid="five"), changed()),
        ("key without message", "missing key", key(TRUTH, messageid=LEFT_OUT), changed()),
        ("key without uid", "missing key", key(TRUTH, uid=None), changed()),
        ("mailbox is no UUID", NO_ID, key(TRUTH, mailboxid=NO_UUID), changed()),
    ]
    in_projection: list[tuple[str, str, object, object]] = [
        (
            "delete without mailbox",
            "missing key",
            key(PROJECTION, mailboxid=None),
            event(scene, PROJECTION, op="d"),
        ),
        (
            "range of a mailbox that is no UUID",
            "wrong type: mailboxid is not a UUID",
            key(PROJECTION),
            event(
                scene,
                PROJECTION,
                op="u",
                after={"_range_start": NO_MAILBOX, "_range_end": NO_MAILBOX},
            ),
        ),
        (
            "message is no UUID",
            "wrong type: messageid is not a UUID",
            key(PROJECTION),
            event(scene, PROJECTION, op="u", after=other_message),
        ),
    ]
    return [
        *(_bad(TRUTH, *each) for each in in_truth),
        *(_bad(PROJECTION, *each) for each in in_projection),
    ]


def _bad(table: str, what: str, reason: str, its_key: object, value: object) -> Bad:
    if isinstance(value, dict):
        value["mark"] = what
    marked = _bytes(value)
    assert marked is not None
    return Bad(what, reason, table, _bytes(its_key), marked)


def _bytes(part: object) -> bytes | None:
    if part is None or isinstance(part, bytes):
        return part
    return json.dumps(part).encode()


@pytest.fixture(scope="module")
def bad(scene: Scene) -> list[Bad]:
    """Every bad record, published among good changes."""
    records = bad_records(scene)
    scene.publish((_bytes(key(TRUTH)), _bytes(each)) for each in of_no_table_of_ours(scene))
    scene.publish((each.key, each.value) for each in records)
    return records


def of_no_table_of_ours(scene: Scene) -> list[dict[str, Any]]:
    """What others write into the same topic."""
    marked = partial(event, scene, TRUTH, mark=FOREIGN)
    return [marked(source={"table": "mailbox"}), marked(source={"keyspace": "other"}, op="x")]


@pytest.fixture(scope="module")
def letters(scene: Scene, bad: list[Bad]) -> list[dict[str, Any]]:
    """The dead letters once there are as many as bad records."""
    until("every bad record is a dead letter", lambda: len(scene.dead_letters()) >= len(bad))
    return scene.dead_letters()


def test_each_bad_record_is_kept_once_with_its_reason_and_its_place(
    scene: Scene, bad: list[Bad], letters: list[dict[str, Any]]
) -> None:
    kept = {
        each.what: [letter for letter in letters if each.what in letter["record"]] for each in bad
    }
    assert {what: [one["reason"] for one in found] for what, found in kept.items()} == {
        each.what: [each.reason] for each in bad
    }
    for each in bad:
        (letter,) = kept[each.what]
        assert letter["topic"] == scene.stack.topic_prefix
        assert letter["record"] == each.value.decode()
        assert {"partition", "offset"} <= letter.keys()
    assert not [letter for letter in letters if FOREIGN in letter["record"]]


def test_dead_letters_are_counted_by_reason(
    scene: Scene, bad: list[Bad], letters: list[dict[str, Any]]
) -> None:
    def counted() -> bool:
        return all(
            scene.metric("reconciler_dead_letters_total", reason=reason) == number
            for reason, number in Counter(each.reason for each in bad).items()
        )

    until("the metrics show as many by reason", counted)


def test_the_stream_goes_on_after_bad_records(scene: Scene, bad: list[Bad]) -> None:
    place = Place()
    scene.write_truth(place, cells())
    scene.await_verified(place.row)
    assert scene.agrees(place)
    assert scene.stream.said("the query died") == []


def test_a_well_formed_event_of_900_kilobytes_is_examined(scene: Scene) -> None:
    place = Place()
    large = {"value": "x" * 900_000, "deletion_ts": None, "set": True}
    value = json.dumps(event(scene, TRUTH, after={"headercontent": large})).encode()
    assert len(value) > 900_000
    scene.publish([(place.event_key, value)])
    until("its key is remembered", lambda: scene.is_known(place))
