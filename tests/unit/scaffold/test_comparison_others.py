"""The full comparison of rights, references and mailboxes: right tables, and each difference."""

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest

from deploy.comparison.differences import differences
from deploy.comparison.messages import DifferenceKind
from deploy.comparison.snapshot import MailboxAt, Snapshot, newest_lists
from deploy.mailserver.attachments import REFERENCES, id_as_uuid
from deploy.mailserver.history import RowKey
from deploy.mailserver.mailbox_statements import MAILBOXES
from deploy.mailserver.rights import LIST_RIGHTS, USER_RIGHTS

INBOX, ARCHIVE, GONE, MESSAGE, OTHER = (uuid.uuid1() for _ in range(5))
ANA, BEN, OWNER = "ana@example.org", "ben", "owner"
MISSING, EXTRA, CELLS = DifferenceKind.MISSING, DifferenceKind.EXTRA, DifferenceKind.CELLS
CONFLICT = DifferenceKind.MAILBOX_CONFLICT
REFERENCE = (id_as_uuid("a1"), str(MESSAGE))

RIGHT = Snapshot(
    lists={INBOX: {ANA: "rl", "$staff": "l", f"-{BEN}": "w", "anyone": "l"}, ARCHIVE: {}},
    user_rights={(INBOX, ANA): "lr"},
    list_rights={
        (INBOX, ANA): "lr",
        (INBOX, "$staff"): "l",
        (INBOX, f"-{BEN}"): "w",
        (INBOX, "anyone"): "l",
    },
    contents={MESSAGE: ("a1", "a2", "a1"), OTHER: ()},
    references={REFERENCE: "a1", (id_as_uuid("a2"), str(MESSAGE)): "a2"},
    mailboxes={INBOX: MailboxAt("#private", OWNER, "INBOX")},
    paths={MailboxAt("#private", OWNER, "INBOX"): INBOX},
)


def found(**changes: Any) -> list[tuple[str, DifferenceKind, RowKey]]:
    wrong = differences(replace(RIGHT, **changes))
    return [(each.projection, each.kind, each.row) for each in wrong]


def test_right_tables_have_no_difference() -> None:
    assert found() == []


# --- rights

OF_USER: dict[str, tuple[dict[RowKey, str], list[tuple[DifferenceKind, RowKey]]]] = {
    "missing": ({}, [(MISSING, (INBOX, ANA))]),
    "other letters": ({(INBOX, ANA): "l"}, [(CELLS, (INBOX, ANA))]),
    "letters in another order": ({(INBOX, ANA): "rl"}, [(CELLS, (INBOX, ANA))]),
    "no letters": ({(INBOX, ANA): ""}, [(CELLS, (INBOX, ANA))]),
    "of somebody without rights": (
        {(INBOX, ANA): "lr", (INBOX, BEN): "l"},
        [(EXTRA, (INBOX, BEN))],
    ),
    "of a group": ({(INBOX, ANA): "lr", (INBOX, "$staff"): "l"}, [(EXTRA, (INBOX, "$staff"))]),
    "after the list was emptied": (
        {(INBOX, ANA): "lr", (ARCHIVE, ANA): "l"},
        [(EXTRA, (ARCHIVE, ANA))],
    ),
    "of a mailbox without a list": (
        {(INBOX, ANA): "lr", (GONE, ANA): "l"},
        [(EXTRA, (GONE, ANA))],
    ),
}


@pytest.mark.parametrize("case", OF_USER)
def test_each_difference_of_the_rows_of_users(case: str) -> None:
    rows, wrong = OF_USER[case]
    assert found(user_rights=rows) == [(USER_RIGHTS, *each) for each in wrong]


def test_each_difference_of_the_rows_of_a_list() -> None:
    rows = {**RIGHT.list_rights, (INBOX, ANA): "l", (ARCHIVE, BEN): "l"}
    del rows[INBOX, "$staff"]
    assert set(found(list_rights=rows)) == {
        (LIST_RIGHTS, CELLS, (INBOX, ANA)),
        (LIST_RIGHTS, EXTRA, (ARCHIVE, BEN)),
        (LIST_RIGHTS, MISSING, (INBOX, "$staff")),
    }


def test_a_list_that_cannot_be_read_is_one_difference() -> None:
    unreadable = DifferenceKind.UNREADABLE_LIST
    assert found(lists={INBOX: None}) == [(USER_RIGHTS, unreadable, (INBOX, 0))]


def event(aggregate: object, number: int, **told: Any) -> dict[str, Any]:
    text = json.dumps({"eventId": number, "type": "acl-updated", **told})
    return {"aggregateid": str(aggregate), "eventid": number, "event": text}


def granted(**entries: str) -> dict[str, Any]:
    return {"aclDiff": {"oldAcl": {"entries": {}}, "newAcl": {"entries": entries}}}


def test_the_newest_event_of_each_mailbox_counts_and_other_aggregates_do_not() -> None:
    events = [
        event(INBOX, 10, **granted(ana="l")),
        event(INBOX, 9, **granted(ana="lr", ben="l")),
        event(ARCHIVE, 0, **granted()),
        event("FilteringRule/ana", 0, type="filtering-rule-set"),
        {"aggregateid": "FilteringRule/ben", "eventid": 0, "event": "{"},
    ]
    assert newest_lists(events) == {INBOX: {"ana": "l"}, ARCHIVE: {}}


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"eventId": 1, "type": "acl-updated"}'])
@pytest.mark.parametrize("number", [0, 2])
def test_a_list_with_an_event_that_cannot_be_read_is_unreadable(text: str, number: int) -> None:
    broken = {"aggregateid": str(INBOX), "eventid": number, "event": text}
    assert newest_lists([event(INBOX, 1, **granted(ana="l")), broken]) == {INBOX: None}


# --- references


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ({REFERENCE: "a1"}, [(MISSING, (id_as_uuid("a2"), str(MESSAGE)))]),
        ({**RIGHT.references, REFERENCE: "a9"}, [(CELLS, REFERENCE)]),
        (
            {**RIGHT.references, (id_as_uuid("a1"), str(OTHER)): "a1"},
            [(EXTRA, (id_as_uuid("a1"), str(OTHER)))],
        ),
        (
            {**RIGHT.references, (id_as_uuid("a1"), str(GONE)): "a1"},
            [(EXTRA, (id_as_uuid("a1"), str(GONE)))],
        ),
    ],
    ids=["missing", "another attachment", "not in the list", "message is gone"],
)
def test_each_difference_of_references(
    rows: dict[RowKey, str], wrong: list[tuple[DifferenceKind, RowKey]]
) -> None:
    assert found(references=rows) == [(REFERENCES, *each) for each in wrong]


def test_a_table_without_references_is_not_in_use() -> None:
    assert found(references={}) == []


# --- mailboxes


def at(name: str, user: str = OWNER) -> MailboxAt:
    return MailboxAt("#private", user, name)


@pytest.mark.parametrize(
    ("mailboxes", "paths", "wrong"),
    [
        ({}, {at("INBOX"): INBOX}, {INBOX}),
        ({INBOX: at("INBOX")}, {}, {INBOX}),
        ({INBOX: at("before")}, {at("after"): INBOX}, {INBOX}),
        ({INBOX: at("INBOX")}, {at("INBOX", "other"): INBOX}, {INBOX}),
        ({INBOX: at("INBOX")}, {at("INBOX"): INBOX, at("too"): INBOX}, {INBOX}),
        ({INBOX: at("a"), ARCHIVE: at("b")}, {at("a"): ARCHIVE, at("b"): INBOX}, {INBOX, ARCHIVE}),
        ({INBOX: at("a"), ARCHIVE: at("a")}, {at("a"): INBOX}, {ARCHIVE}),
        ({INBOX: at("a")}, {at("a"): ARCHIVE}, {INBOX, ARCHIVE}),
        ({INBOX: MailboxAt("", "", "")}, {}, {INBOX}),
    ],
)
def test_each_conflict_of_mailboxes(
    mailboxes: dict[uuid.UUID, MailboxAt],
    paths: dict[MailboxAt, uuid.UUID],
    wrong: set[uuid.UUID],
) -> None:
    conflicts = found(mailboxes=mailboxes, paths=paths)
    assert {(projection, kind) for projection, kind, _ in conflicts} == {(MAILBOXES, CONFLICT)}
    assert {row[0] for _, _, row in conflicts} == wrong


def test_a_conflict_says_both_sides() -> None:
    [conflict] = differences(replace(RIGHT, mailboxes={}))
    assert str(conflict) == (
        f"mailboxes: mailbox_conflict in row missing, path #private/{OWNER}/INBOX:"
        f" mailbox {INBOX}, uid {OWNER}, message unknown"
    )
