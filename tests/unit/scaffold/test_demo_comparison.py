"""The full comparison of each table with the truth, as the tables were read."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from deploy.comparison.differences import differences
from deploy.comparison.messages import DifferenceKind
from deploy.comparison.snapshot import Snapshot
from deploy.mailserver.history import NO_UID, RowKey, counter_row
from deploy.mailserver.indexes import UID_INDEXES

INBOX, ARCHIVE, BARE = uuid.uuid1(), uuid.uuid1(), uuid.uuid1()
ROOT = "#private&bob@example.org"

MISSING, EXTRA = DifferenceKind.MISSING, DifferenceKind.EXTRA


def row(mailboxid: uuid.UUID, uid: int, **cells: object) -> dict[str, Any]:
    """A message that no index knows, of 10 octets."""
    return {
        "mailboxid": mailboxid,
        "uid": uid,
        "messageid": uuid.uuid1(),
        "modseq": 1,
        "internaldate": 1,
        "bodystartoctet": 1,
        "fullcontentoctets": 10,
        "headercontent": "h",
        "flagseen": True,
        "flagdeleted": False,
        "flagrecent": False,
        "userflags": None,
        **cells,
    }


MARKED = row(
    INBOX, 1, flagseen=False, flagdeleted=True, flagrecent=True, userflags={"work", "home"}
)
PLAIN = row(INBOX, 2)
ELSEWHERE = row(ARCHIVE, 1, flagseen=False)


def keyed(*rows: Mapping[str, Any]) -> dict[RowKey, Any]:
    return {(each["mailboxid"], each["uid"]): each for each in rows}


RIGHT = Snapshot(
    truth={place: [each] for place, each in keyed(MARKED, PLAIN, ELSEWHERE).items()},
    listed=keyed(MARKED, PLAIN, ELSEWHERE),
    indexed={
        "unseen_uids": frozenset({(INBOX, 1), (ARCHIVE, 1)}),
        "recent_uids": frozenset({(INBOX, 1)}),
        "deleted_uids": frozenset({(INBOX, 1)}),
    },
    applicable={INBOX: frozenset({"work", "home", "not in use"})},
    counted={
        "mailbox_counters": {
            INBOX: {"count": 2, "unseen": 1},
            ARCHIVE: {"count": 1, "unseen": 1},
        },
        "current_quota": {ROOT: {"messagecount": 3, "storage": 30}},
    },
    roots={INBOX: ROOT, ARCHIVE: ROOT},
)


def found(tables: Snapshot) -> list[tuple[str, DifferenceKind, RowKey]]:
    return [(each.projection, each.kind, each.row) for each in differences(tables)]


def without(tables: Snapshot, *places: RowKey) -> Snapshot:
    """The messages there are gone from the truth; their counters know it."""
    truth = {place: claims for place, claims in tables.truth.items() if place not in places}
    return replace(tables, truth=truth, roots={})


def reindexed(tables: Snapshot, projection: str, *rows: RowKey) -> Snapshot:
    return replace(tables, indexed={**tables.indexed, projection: frozenset(rows)})


def test_right_tables_have_no_difference() -> None:
    assert found(RIGHT) == []
    assert found(Snapshot()) == []


# --- indexes


@pytest.mark.parametrize("name", [index.projection for index in UID_INDEXES])
def test_an_index_lacks_a_row_and_has_one_too_many(name: str) -> None:
    others = RIGHT.indexed[name] - {(INBOX, 1)}
    wrong = reindexed(RIGHT, name, *others, (INBOX, 2), (BARE, 7))
    assert set(found(wrong)) == {
        (name, MISSING, (INBOX, 1)),
        (name, EXTRA, (INBOX, 2)),
        (name, EXTRA, (BARE, 7)),
    }


@pytest.mark.parametrize(
    ("cells", "projection"),
    [
        ({"flagseen": False}, "unseen_uids"),
        ({"flagrecent": True}, "recent_uids"),
        ({"flagdeleted": True}, "deleted_uids"),
    ],
)
def test_each_index_follows_its_flag(cells: dict[str, object], projection: str) -> None:
    changed = {**PLAIN, **cells}
    tables = replace(
        RIGHT,
        truth={**RIGHT.truth, (INBOX, 2): [changed]},
        listed={**RIGHT.listed, (INBOX, 2): changed},
        roots={},
    )
    assert found(tables) == [(projection, MISSING, (INBOX, 2))]


def test_an_index_row_of_an_expunged_message_is_one_too_many() -> None:
    gone = without(RIGHT, (INBOX, 1))
    unlisted = {place: each for place, each in gone.listed.items() if place != (INBOX, 1)}
    assert set(found(replace(gone, listed=unlisted))) == {
        (index.projection, EXTRA, (INBOX, 1)) for index in UID_INDEXES
    }


UNJUDGED = {
    "listed, but not in the truth": without(RIGHT, (INBOX, 1)),
    "in the truth, but not listed": replace(RIGHT, listed=keyed(PLAIN, ELSEWHERE)),
    "incomplete": replace(RIGHT, truth={**RIGHT.truth, (INBOX, 1): [{**MARKED, "modseq": None}]}),
    "claimed twice": replace(RIGHT, truth={**RIGHT.truth, (INBOX, 1): [MARKED, PLAIN]}, roots={}),
}


@pytest.mark.parametrize("case", UNJUDGED)
def test_an_index_of_a_doubtful_message_is_not_judged(case: str) -> None:
    for rows in ((), ((INBOX, 1),)):
        tables = replace(UNJUDGED[case], applicable={})
        for index in UID_INDEXES:
            others = RIGHT.indexed[index.projection] - {(INBOX, 1)}
            tables = reindexed(tables, index.projection, *others, *rows)
        assert [projection for projection, _, _ in found(tables)] == ["messages"]


def test_a_flag_in_use_must_be_listed() -> None:
    lacking = replace(RIGHT, applicable={INBOX: frozenset({"home", "not in use"})})
    [difference] = differences(lacking)
    assert difference.place == ("applicable_flags", (INBOX, NO_UID))
    assert (difference.kind, difference.columns) == (DifferenceKind.CELLS, ("work",))
    assert len(found(replace(RIGHT, applicable={}))) == 1


# --- counters


def counted(projection: str, owner: uuid.UUID | str, **counters: int | None) -> Snapshot:
    table = {**RIGHT.counted[projection], owner: counters}
    return replace(RIGHT, counted={**RIGHT.counted, projection: table})


@pytest.mark.parametrize(
    ("counters", "told"),
    [
        ({"count": 3, "unseen": 1}, ("count is 3, must be 2",)),
        ({"count": 2, "unseen": -1}, ("unseen is -1, must be 1",)),
        ({"count": 2, "unseen": None}, ("unseen is 0, must be 1",)),
        ({"count": 1, "unseen": 2}, ("count is 1, must be 2", "unseen is 2, must be 1")),
    ],
)
def test_the_counters_of_a_mailbox(counters: dict[str, int | None], told: tuple[str, ...]) -> None:
    [difference] = differences(counted("mailbox_counters", INBOX, **counters))
    assert difference.place == ("mailbox_counters", (INBOX, NO_UID))
    assert (difference.kind, difference.columns) == (DifferenceKind.WRONG_COUNTER, told)
    assert difference.owner == str(INBOX)


@pytest.mark.parametrize("counters", [{"messagecount": 2, "storage": 30}, {"messagecount": 3}])
def test_the_quota_is_that_of_all_mailboxes_of_a_user(counters: dict[str, int]) -> None:
    [difference] = differences(counted("current_quota", ROOT, **counters))
    assert difference.place == ("current_quota", counter_row(ROOT))
    assert difference.owner == ROOT


def test_a_mailbox_without_a_counter_row_counts_nothing() -> None:
    nothing = replace(RIGHT, counted={})
    places = {(projection, place) for projection, _, place in found(nothing)}
    assert places == {
        ("mailbox_counters", (INBOX, NO_UID)),
        ("mailbox_counters", (ARCHIVE, NO_UID)),
        ("current_quota", counter_row(ROOT)),
    }
    empty = Snapshot(roots=RIGHT.roots)
    assert found(empty) == []


def test_a_mailbox_that_does_not_exist_is_not_counted() -> None:
    assert found(counted("mailbox_counters", BARE, count=5)) == []
    only_inbox = replace(RIGHT, roots={INBOX: ROOT})
    [difference] = differences(only_inbox)
    assert difference.columns == ("messagecount is 3, must be 2", "storage is 30, must be 20")
