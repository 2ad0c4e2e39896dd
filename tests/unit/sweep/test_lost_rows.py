"""What a person's word on many rows covers, and what their finding says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.rows.decision import ACCEPTABLE, accepted
from reconcilers.rows.finding import Finding, State
from reconcilers.sweep.lost_rows import (
    COVERED,
    LostRow,
    LostRows,
    covered,
    place_of,
    reason_at,
    together,
)
from reconcilers.words.model import Kind, Micros
from tests.builders.findings import acceptance
from tests.builders.rows import FAMILY, LONG_AGO, NOW, SECOND, SLOT

AMBIGUOUS, ABSENT = Kind.AMBIGUOUS_RANGE_DELETE, Kind.ABSENT_WITHOUT_DELETE
MAILBOX_LOST = Kind.MAILBOX_WITHOUT_TRUTH


def group(reason: Kind = AMBIGUOUS) -> Finding:
    return together(FAMILY, LostRows(reason, 5, 2, (SLOT,)), NOW)


def row(reason: Kind = AMBIGUOUS, counted_at: int = NOW) -> LostRow:
    return LostRow(SLOT, reason, counted_at, counted_at)


def agreed(reason: Kind = AMBIGUOUS, later: Micros = 0) -> Finding:
    return accepted(group(reason), NOW + later)


ALL_THREE = {AMBIGUOUS, ABSENT, MAILBOX_LOST}
COVERED_THEN: dict[str, tuple[Finding | None, LostRow | None, Kind, set[Kind]]] = {
    # the finding, the row, its reason now; what a person's word covers
    "there is no finding": (None, row(), AMBIGUOUS, set()),
    "it is not accepted": (group(), row(), AMBIGUOUS, set()),
    "the row was never counted": (agreed(), None, AMBIGUOUS, set()),
    "counted by then": (agreed(later=SECOND), row(), AMBIGUOUS, {AMBIGUOUS}),
    "counted after it was told": (
        agreed(later=3600 * SECOND),
        row(counted_at=NOW + 1),
        AMBIGUOUS,
        set(),
    ),
    **{
        f"by now {reason}": (agreed(), row(), reason, set[Kind]())
        for reason in (ABSENT, MAILBOX_LOST, Kind.UNRESOLVED, Kind.CONTENT_LOST)
    },
    **{
        f"of a mailbox that lost most of its truth, {reason}": (
            agreed(MAILBOX_LOST),
            row(MAILBOX_LOST),
            reason,
            ALL_THREE,
        )
        for reason in (AMBIGUOUS, ABSENT, MAILBOX_LOST)
    },
    "nobody knows what it is of": (
        agreed(Kind.UNRESOLVED),
        row(Kind.UNRESOLVED),
        Kind.UNRESOLVED,
        set(),
    ),
}


@pytest.mark.parametrize("case", COVERED_THEN)
def test_what_a_persons_word_covers(case: str) -> None:
    finding, lost, reason, expected = COVERED_THEN[case]
    assert covered(finding, lost, reason) == expected


def test_each_reason_has_a_place_of_its_own_which_no_row_has() -> None:
    places = {place_of(FAMILY, each) for each in COVERED}
    assert len(places) == len(COVERED)
    assert all(reason_at(FAMILY, place_of(FAMILY, each)) is each for each in COVERED)
    assert reason_at(FAMILY, SLOT) is None


def test_its_finding_tells_number_mailboxes_some_of_them_and_what_to_type() -> None:
    born = (LONG_AGO, NOW)
    lost = LostRows(ABSENT, 4, 2, (SLOT,), born)
    found = together(FAMILY, lost, NOW)
    assert (found.kind, found.state) == (Kind.TRUTH_LOST_ROWS, State.REPORTED)
    assert found.kind in ACCEPTABLE
    assert (found.next_look, found.tried_at) == (None, NOW)
    assert found.sentence.startswith(
        "absent_without_delete: imapuidtable has lost 4 rows of 2 mailboxes without a delete: was"
        " it restored from an older copy? (messages made from 2027-01-15 07:00 to 2027-01-15 08:00"
        " UTC), 11111111-0000-1000-8000-000000000001/7 among them; "
    )
    assert "--members " in found.sentence
    assert "--accept " in found.sentence
    assert "counters of these mailboxes wait" in found.sentence


def test_what_no_sweep_can_decide_yet_is_not_offered() -> None:
    assert "--accept" not in group(Kind.UNRESOLVED).sentence


def test_rows_that_were_found_after_an_acceptance_are_told_so() -> None:
    lost = LostRows(AMBIGUOUS, 5, 2, (SLOT,), since=NOW)
    found = together(FAMILY, lost, NOW + SECOND)
    assert "these were found after what a person has accepted" in found.sentence
    before = acceptance(found.kind, at=NOW)
    again = accepted(replace(found, accepted=before), NOW + 2 * SECOND)
    assert again.accepted_at == NOW + SECOND
