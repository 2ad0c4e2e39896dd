"""Step 2: a finding of the first version as it stands at its family's own key."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import pytest

from checkpoints import codec
from checkpoints.cassandra.journal import bucket_of
from checkpoints.schema.step_002 import copy, taken_over
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.writes import AddToCounter
from reconcilers.words.key import WHOLE_TABLE, slot_from_text
from reconcilers.words.model import Slot
from tests.builders.rows import MAILBOX, MESSAGE_ID

AT = 1_700_000_000_000_000
ROOT = "#private&bob/smith"
OTHERS = ("kind", "state", "sentence", 1, 2, "batch", 3, 4, 5, False, None, "[]")
NOWHERE = UUID(int=0)


def counter(**key: object) -> str:
    """A counter's write as the first version kept it."""
    write = {"write": "add_to_counter", "tally": "current_quota", "mailboxid": "m", "uid": 0}
    return json.dumps([{**write, **key, "round": 3, "deltas": {"count": -2}}])


def old(family: str, mailboxid: UUID, uid: int, messageid: str | None, writes: str | None) -> Any:
    return (family, "p", mailboxid, uid, messageid, writes, AT, *OTHERS)


CASES: dict[str, tuple[Any, str, str | None]] = {
    "a message": (
        old("message", MAILBOX, 7, str(MESSAGE_ID), "[]"),
        f"{MAILBOX}/7",
        str(MESSAGE_ID),
    ),
    "a message's table": (old("message", NOWHERE, 0, None, "[]"), "", None),
    "a mailbox": (old("mailbox_tally", MAILBOX, 0, None, "[]"), f"{MAILBOX}", None),
    "a root": (
        old("user_tally", uuid5(NAMESPACE_URL, ROOT), 0, ROOT, "[]"),
        "#private&bob%2Fsmith",
        None,
    ),
    "a counter's table": (old("user_tally", NOWHERE, 0, None, "[]"), "", None),
}


@pytest.mark.parametrize(("row", "key", "source"), CASES.values(), ids=CASES.keys())
def test_it_stands_at_its_own_key(row: Any, key: str, source: str | None) -> None:
    ((family, bucket, projection, *place, writes, at),) = [
        (*each[:5], each[5], each[-1]) for each in taken_over(row)
    ]
    assert (family, projection, place, at) == (row[0], "p", [key, source], AT)
    assert bucket == bucket_of(key) == zlib.crc32(key.encode()) % 16
    assert json.loads(writes) == []


def test_all_else_stays_as_it_was() -> None:
    (row,) = taken_over(old("message", MAILBOX, 7, None, '[{"write": "delete_row"}]'))
    assert row[5] == '[{"write": "delete_row"}]'
    assert row[6:-1] == OTHERS


@pytest.mark.parametrize("nothing", [None, ""])
@pytest.mark.parametrize("family", ["message", "mailbox_tally"])
def test_a_finding_without_writes_is_taken_over_without_any(
    family: str, nothing: str | None
) -> None:
    (row,) = taken_over(old(family, MAILBOX, 0, None, nothing))
    assert row[5] == nothing
    assert row[6:-1] == OTHERS


@pytest.mark.parametrize(
    ("family", "row", "slot"),
    [
        (
            USER_TALLY,
            old("user_tally", uuid5(NAMESPACE_URL, ROOT), 0, ROOT, counter(key=ROOT)),
            Slot(ROOT),
        ),
        (
            MAILBOX_TALLY,
            old(
                "mailbox_tally",
                MAILBOX,
                0,
                None,
                counter(tally="mailbox_counters", key={"uuid": str(MAILBOX)}),
            ),
            Slot(MAILBOX),
        ),
    ],
    ids=["root", "mailbox"],
)
def test_a_counter_s_write_is_read_by_this_version(family: Any, row: Any, slot: Slot) -> None:
    (made,) = taken_over(row)
    assert slot_from_text(family.key, made[3]) == slot
    assert made[5] == json.dumps(json.loads(made[5]), separators=(",", ":"))
    assert not {"mailboxid", "uid"} & json.loads(made[5])[0].keys() - {family.key[0].name}
    (write,) = (codec.write_from_json(each, family) for each in json.loads(made[5]))
    assert isinstance(write, AddToCounter)
    assert (write.slot, write.key, write.round, dict(write.deltas)) == (
        slot,
        slot.key[0],
        3,
        {"count": -2},
    )


def test_what_nobody_could_be_told_of_is_left_behind() -> None:
    """A root without a name, and the rest of a row that was closed while it was written."""
    assert list(taken_over(old("user_tally", MAILBOX, 0, None, "[]"))) == []
    gone = ("message", "p", MAILBOX, 7, None, None, None, *OTHERS)
    assert list(taken_over(gone)) == []


class Rows:
    """A store of which the copy asks for the findings of old, and where it writes the new."""

    def __init__(self, *old_rows: Any) -> None:
        self.old_rows, self.sent = old_rows, list[tuple[Any, tuple[Any, ...]]]()

    def prepare(self, cql: str) -> object:
        return cql

    def rows(self, _doing: str, statement: Any, *_values: object) -> Iterator[Any]:
        assert statement.endswith(" FROM $ks.open_findings")
        return iter(self.old_rows)

    def run(self, _doing: str, requests: Iterable[tuple[Any, tuple[Any, ...]]]) -> None:
        self.sent += requests


def test_each_row_is_copied_with_a_value_for_each_column_and_its_write_time() -> None:
    row, *_ = CASES["a message"]
    left_behind = old("user_tally", MAILBOX, 0, None, "[]")
    store = Rows(row, left_behind, row)
    copy(store)
    ((cql, values), again) = store.sent
    assert (cql, values) == again
    named, _, marks = cql.partition(") VALUES (")
    columns = named.partition("INSERT INTO $ks.findings (")[2].split(", ")
    assert marks == ", ".join("?" * len(columns)) + ") USING TIMESTAMP ?"
    placed = dict(zip([*columns, "written at"], values, strict=True))
    expected = {"family": "message", "key": f"{MAILBOX}/7", "kind": "kind", "written at": AT}
    assert expected.items() <= placed.items()


def test_a_whole_table_has_no_key() -> None:
    assert WHOLE_TABLE.key == ()
