"""The closing judgement of index rows and counters, and of what stands beside a reported row."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from deploy.comparison.messages import DifferenceKind, Mismatch
from deploy.demo.summary import summary
from deploy.demo.verdict import (
    BESIDE,
    NOT_FINE,
    Exhibits,
    Line,
    endings_by_kind,
    findings_by_kind,
    judged,
    repair_seconds,
)
from deploy.mailserver.history import MESSAGES, NO_UID, RowKey, RowPlace, counter_row
from deploy.mailserver.ledger import AMBIGUOUS_RANGE_DELETE, HEALED, VERIFIED, LedgerEntry

INBOX, UNTIDY, MESSAGE = uuid.uuid1(), uuid.uuid1(), uuid.uuid1()
BOB, EVE = "#private&bob@example.org", "#private&eve@example.org"
COUNTERS, QUOTA = "mailbox_counters", "current_quota"
UNDECIDED = (UNTIDY, 9)
"""A row that is reported, in the mailbox of another user."""


def entry(projection: str, row: RowKey, *accepts: str) -> LedgerEntry:
    now = datetime.now(UTC)
    name = f"{projection}-{row[1]}"
    return LedgerEntry(name, "lost", "append", "insert", MESSAGE, (row,), now, accepts, projection)


def finding(projection: str, row: RowKey, state: str, **facts: object) -> Line:
    return {
        "projection": projection,
        "mailboxid": str(row[0]),
        "uid": row[1],
        "messageid": str(MESSAGE),
        "kind": "wrong",
        "state": state,
        "sentence": "so it is",
        "found_at": 1,
        "at": 3_000_000,
        "oldest": 1_000_000,
        "attempts": 1,
        **facts,
    }


def of_root(root: str, state: str) -> Line:
    told = finding(QUOTA, (uuid.uuid4(), 0), state, quotaroot=root, oldest=None)
    return {name: value for name, value in told.items() if name not in {"mailboxid", "uid"}}


def difference(place: RowPlace) -> Mismatch:
    projection, row = place
    return Mismatch(DifferenceKind.MISSING, *row, projection=projection, owner=str(row))


REPORTED = finding(MESSAGES, UNDECIDED, "reported", kind=AMBIGUOUS_RANGE_DELETE)
FINE = Exhibits(
    entries=[
        entry("unseen_uids", (INBOX, 1), VERIFIED),
        entry("recent_uids", (INBOX, 2), VERIFIED, HEALED),
        entry("applicable_flags", (INBOX, NO_UID), VERIFIED),
        entry(COUNTERS, (INBOX, NO_UID), VERIFIED, HEALED),
        entry(QUOTA, counter_row(BOB), VERIFIED, HEALED),
        entry(MESSAGES, UNDECIDED, VERIFIED, AMBIGUOUS_RANGE_DELETE),
    ],
    log=[
        finding("unseen_uids", (INBOX, 1), "verified"),
        finding("applicable_flags", (INBOX, 7), "intended", at=4_000_000),
        finding("applicable_flags", (INBOX, 7), "verified"),
        finding(COUNTERS, (INBOX, NO_UID), "intended", at=99_000_000),
        finding(COUNTERS, (INBOX, NO_UID), "verified"),
        of_root(BOB, "verified"),
        REPORTED,
    ],
    standing=[REPORTED],
    differences=[difference((MESSAGES, UNDECIDED))],
    roots={INBOX: BOB, UNTIDY: EVE},
)


def problems(evidence: Exhibits) -> Sequence[str]:
    return judged(evidence).problems


def endings(evidence: Exhibits) -> list[str]:
    return [ending for _, ending in judged(evidence).endings]


def test_each_table_is_judged_by_what_is_said_of_it() -> None:
    assert problems(FINE) == []
    verified = [VERIFIED, HEALED, VERIFIED, VERIFIED, VERIFIED]
    assert endings(FINE) == [*verified, AMBIGUOUS_RANGE_DELETE]
    assert "1 of 2 mailboxes and 1 of 2 quota roots" in list(summary(FINE, judged(FINE)))[-1]


@pytest.mark.parametrize("projection", [MESSAGES, "recent_uids"])
def test_an_index_row_is_not_verified_by_a_finding_of_another_table(projection: str) -> None:
    elsewhere = finding(projection, (INBOX, 1), "verified")
    [problem] = problems(replace(FINE, log=[elsewhere, *FINE.log[1:]]))
    assert "unseen_uids-1 (lost on append/insert" in problem


@pytest.mark.parametrize(
    ("place", "times"),
    [
        (("unseen_uids", (INBOX, 1)), 2),
        (("recent_uids", (INBOX, 2)), 2),
        (("applicable_flags", (INBOX, NO_UID)), 2),
        ((COUNTERS, (INBOX, NO_UID)), 2),
        ((QUOTA, counter_row(BOB)), 2),
        (("deleted_uids", (INBOX, 5)), 1),
        ((COUNTERS, (uuid.uuid1(), NO_UID)), 1),
    ],
)
def test_what_differs_in_any_table_is_named(place: RowPlace, times: int) -> None:
    """Once as a difference, and once more for a fault that ended there."""
    wrong = replace(FINE, differences=[*FINE.differences, difference(place)])
    assert len(problems(wrong)) == times
    assert NOT_FINE in endings(wrong) or times == 1


def test_a_quota_root_is_called_by_its_name() -> None:
    wrong = replace(FINE, differences=[*FINE.differences, difference((QUOTA, counter_row(BOB)))])
    assert f"{BOB} differs, reconciler: verified" in problems(wrong)[0]


def test_an_open_finding_of_any_table_is_named() -> None:
    for line in (
        finding("unseen_uids", (INBOX, 1), "intended"),
        finding("deleted_uids", (INBOX, 5), "reported"),
        finding(COUNTERS, (INBOX, NO_UID), "intended"),
        of_root(BOB, "held"),
    ):
        assert len(problems(replace(FINE, standing=[REPORTED, line]))) == 1


# --- beside a reported row

BESIDE_IT = [
    ("unseen_uids", UNDECIDED),
    ("recent_uids", UNDECIDED),
    ("deleted_uids", UNDECIDED),
    (COUNTERS, (UNTIDY, NO_UID)),
    (QUOTA, counter_row(EVE)),
]


@pytest.mark.parametrize("place", BESIDE_IT, ids=lambda place: place[0])
def test_what_a_reported_row_belongs_to_is_not_judged(place: RowPlace) -> None:
    projection, row = place
    standing = [REPORTED, of_root(EVE, "held")]
    if projection != QUOTA:
        standing = [REPORTED, finding(projection, row, "held")]
    unjudged = replace(
        FINE,
        entries=[*FINE.entries, entry("recent_uids", (INBOX, 3), HEALED), entry(*place, VERIFIED)],
        differences=[*FINE.differences, difference(place)],
        standing=standing,
    )
    alone = f"every fault in {projection} lies beside a reported row: nothing was shown"
    told = [problem for problem in problems(unjudged) if problem != alone]
    assert told == []
    assert endings(unjudged)[-1] == BESIDE
    assert endings_by_kind(judged(unjudged))[f"{projection} lost"]["reported"] == 1


@pytest.mark.parametrize("place", BESIDE_IT, ids=lambda place: place[0])
def test_it_is_judged_where_the_tables_agree_whatever_the_reconciler_reports(
    place: RowPlace,
) -> None:
    """The exclusion follows from the plan and the tables: a report alone excuses nothing."""
    entries = [each for each in FINE.entries if each.projection != MESSAGES]
    unplanned = replace(FINE, entries=entries, differences=[*FINE.differences, difference(place)])
    assert any("the tables differ" in each and place[0] in each for each in problems(unplanned))
    repaired = replace(FINE, standing=[], differences=[difference(place)])
    assert any("the tables differ" in each and place[0] in each for each in problems(repaired))


def test_a_neighbour_in_the_same_mailbox_is_judged() -> None:
    neighbour = difference(("unseen_uids", (UNTIDY, 8)))
    flags = difference(("applicable_flags", (UNTIDY, NO_UID)))
    wrong = replace(FINE, differences=[*FINE.differences, neighbour, flags])
    assert len(problems(wrong)) == 2


def test_it_is_not_enough_when_every_fault_of_a_table_is_beside() -> None:
    others = [each for each in FINE.entries if each.projection != QUOTA]
    unshown = replace(
        FINE,
        entries=[*others, entry(QUOTA, counter_row(EVE), VERIFIED)],
        differences=[*FINE.differences, difference((QUOTA, counter_row(EVE)))],
    )
    assert problems(unshown) == [
        "every fault in current_quota lies beside a reported row: nothing was shown"
    ]


# --- numbers


def test_findings_are_counted_by_table_and_repairs_of_counters_not_timed() -> None:
    assert findings_by_kind(FINE.log)["mailbox_counters wrong"] == {
        "found": 1,
        "intended": 1,
        "verified": 1,
    }
    assert list(findings_by_kind(FINE.log)) == [
        "applicable_flags wrong",
        "current_quota wrong",
        "mailbox_counters wrong",
        f"messages {AMBIGUOUS_RANGE_DELETE}",
        "unseen_uids wrong",
    ]
    assert repair_seconds(FINE.log) == [3.0]
