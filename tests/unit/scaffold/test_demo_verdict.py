"""The closing judgement: what passes, and that each thing that may not be is named."""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from deploy.comparison.messages import DifferenceKind, Mismatch
from deploy.demo.summary import summary
from deploy.demo.verdict import (
    NOT_FINE,
    Exhibits,
    Line,
    endings_by_kind,
    findings_by_kind,
    judged,
    percentile,
    repair_seconds,
    second_attempts,
)
from deploy.mailserver.history import MESSAGES, RowKey
from deploy.mailserver.ledger import (
    AMBIGUOUS_RANGE_DELETE,
    HEALED,
    VERIFIED,
    LedgerEntry,
)

MAILBOX, MESSAGE = uuid.uuid1(), uuid.uuid1()
LOST, LATE, TWICE, LAST_COPY = ((MAILBOX, uid) for uid in range(1, 5))


def entry(
    name: str, row: RowKey, accepts: tuple[str, ...], operation: str = "append"
) -> LedgerEntry:
    now = datetime.now(UTC)
    return LedgerEntry(name, f"kind_{name}", operation, "insert", MESSAGE, (row,), now, accepts)


def finding(row: RowKey, kind: str, state: str, **facts: object) -> Line:
    place = {"projection": MESSAGES, "mailboxid": str(row[0]), "uid": row[1]}
    told = {"at": 5_000_000, "oldest": 1_000_000, "sentence": "so it is", "messageid": None}
    found = {"found_at": 3_000_000, "attempts": 1}
    return {**place, **told, **found, "kind": kind, "state": state, **facts}


def difference(row: RowKey, kind: DifferenceKind = DifferenceKind.MISSING) -> Mismatch:
    return Mismatch(kind, row[0], row[1], (MESSAGE,))


FINE = Exhibits(
    entries=[
        entry("lost", LOST, (VERIFIED,)),
        entry("late", LATE, (VERIFIED, HEALED)),
        entry("twice", TWICE, ("duplicate_uid",), "planted"),
        entry("last_copy", LAST_COPY, (VERIFIED, AMBIGUOUS_RANGE_DELETE)),
    ],
    log=[
        finding(LOST, "missing_row", "intended", at=8_000_000),
        finding(LOST, "missing_row", "intended", at=9_000_000, attempts=2),
        finding(LOST, "missing_row", "verified", at=15_000_000),
        finding(TWICE, "duplicate_uid", "reported"),
        finding(LAST_COPY, "ambiguous_range_delete", "reported"),
    ],
    standing=[
        finding(TWICE, "duplicate_uid", "reported"),
        finding(LAST_COPY, "ambiguous_range_delete", "reported"),
    ],
    differences=[difference(TWICE, DifferenceKind.DUPLICATE_UID), difference(LAST_COPY)],
)


def problems(evidence: Exhibits) -> Sequence[str]:
    return judged(evidence).problems


def test_exactly_the_planted_differences_are_fine() -> None:
    verdict = judged(FINE)
    assert verdict.fine
    assert [ending for _, ending in verdict.endings] == [
        VERIFIED,
        HEALED,
        "duplicate_uid",
        AMBIGUOUS_RANGE_DELETE,
    ]
    assert verdict.remaining == {(MESSAGES, TWICE), (MESSAGES, LAST_COPY)}
    assert list(summary(FINE, verdict))[-1].startswith("OK: ")


def test_a_fault_that_nobody_verified_is_not_fine() -> None:
    unseen = replace(FINE, log=FINE.log[:2])
    [problem] = problems(unseen)
    assert problem == (
        f"lost (kind_lost on append/insert, message {MESSAGE}) should end as verified:"
        f" messages {MAILBOX}/1 agrees, reconciler: nothing"
    )
    assert next(ending for _, ending in judged(unseen).endings) == NOT_FINE
    assert list(summary(unseen, judged(unseen)))[-1].startswith("NOT OK: 1 ")


def test_a_difference_that_nobody_planted_is_named() -> None:
    stray = difference((MAILBOX, 99), DifferenceKind.EXTRA)
    assert problems(replace(FINE, differences=[*FINE.differences, stray])) == [
        f"the tables differ: {stray}"
    ]


def test_a_fault_whose_row_still_differs_is_named_twice() -> None:
    assert len(problems(replace(FINE, differences=[*FINE.differences, difference(LATE)]))) == 2


def test_a_reported_row_that_was_written_is_named() -> None:
    [problem] = problems(replace(FINE, differences=[difference(TWICE)]))
    assert (
        problem
        == f"messages {MAILBOX}/4 is reported as ambiguous_range_delete, but both tables agree"
    )


def test_a_class_that_is_no_longer_reported_is_not_fine() -> None:
    found = problems(replace(FINE, standing=FINE.standing[1:]))
    assert len(found) == 2
    assert "should end as duplicate_uid" in found[0]
    assert "the tables differ" in found[1]


@pytest.mark.parametrize(
    ("kind", "state", "row"),
    [
        ("missing_row", "stuck", LOST),
        ("missing_row", "held", LOST),
        ("shadowed_delete", "reported", LOST),
        ("shadowed_delete", "reported", TWICE),
        ("unresolved", "reported", (MAILBOX, 77)),
    ],
)
def test_a_finding_that_nobody_planted_is_named(kind: str, state: str, row: RowKey) -> None:
    [problem] = problems(replace(FINE, standing=[*FINE.standing, finding(row, kind, state)]))
    assert problem == f"finding still {state}: {kind} at messages {row[0]}/{row[1]}: so it is"


def test_an_open_breaker_is_named() -> None:
    assert problems(replace(FINE, breakers={"repairs": "too many"})) == [
        "breaker repairs is open: too many"
    ]


def test_the_numbers_of_the_summary() -> None:
    verdict = judged(FINE)
    assert endings_by_kind(verdict) == {
        "messages kind_last_copy": {"reported": 1},
        "messages kind_late": {HEALED: 1},
        "messages kind_lost": {VERIFIED: 1},
        "planted": {"reported": 1},
    }
    assert findings_by_kind(FINE.log)["messages missing_row"] == {
        "found": 1,
        "intended": 1,
        "verified": 1,
    }
    assert second_attempts(FINE.log) == 1
    assert repair_seconds(FINE.log) == [8.0]


def test_percentiles() -> None:
    hundred = [float(n) for n in range(1, 101)]
    assert percentile(hundred, 0.5) == 50.0
    assert percentile(hundred, 0.99) == 99.0
    assert percentile([4.0], 0.99) == 4.0
    assert percentile([], 0.5) == 0.0
