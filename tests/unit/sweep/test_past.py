"""Which rows of the past a sweep leaves together, told on a worker by batched reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest

from reconcilers.declared.family import Projection
from reconcilers.limits.hold import Hold
from reconcilers.rows.decision import accepted
from reconcilers.rows.deletes import ProjectionDelete, TruthDelete
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.rows.memory import Entry
from reconcilers.sweep.lost_rows import LostRow, LostRows, place_of, together
from reconcilers.words.errors import ReadFailed
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot, Suspect, Wake
from streaming.again.past import PastRows, SiftedRows
from streaming.again.pieces import Piece, SweptPiece
from streaming.steps.accepted_together import AcceptedTogether
from streaming.steps.confirm import Confirmer
from streaming.steps.examine import Examiner
from streaming.steps.outcome import Outcome
from tests.builders.examining import RULES
from tests.builders.found import finding_at, suspect_at
from tests.builders.permits import permit
from tests.builders.rows import DELAY, FAMILY, LONG_AGO, MAILBOX, NOW, PROJECTION, SECOND, row
from tests.fakes.checkpoints.lost_rows import MemoryLostRows
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.memory_tables import MemoryTables, PoisonedTables

AMBIGUOUS, ABSENT = Kind.AMBIGUOUS_RANGE_DELETE, Kind.ABSENT_WITHOUT_DELETE
FEW, MANY = 3, 40
RIGHT = 1_000
"""From this UID on the truth has each row."""


def message(uid: int) -> UUID:
    return UUID(f"22222222-0000-1000-8000-{uid:012}")


ELSEWHERE = UUID(int=MAILBOX.int + 1)


@dataclass
class Counting(PoisonedTables):
    """Counts the reads, and how many of them were serial."""

    reads: Counter[str] = field(default_factory=Counter)

    def truth_rows(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        return MemoryTables.truth_with_times(self, messageids)

    def truth_serially(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        self.reads["serial"] += 1
        return super().truth_serially(messageids)

    def truth_with_times(self, messageids: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        self.reads["truth"] += 1
        return super().truth_with_times(messageids)

    def projection_with_times(
        self, projection: Projection, slots: Iterable[Slot]
    ) -> dict[Slot, Row]:
        self.reads["listing"] += 1
        return super().projection_with_times(projection, slots)


class Past:
    """A mailbox of ``MANY`` orphans and as many right rows, and what is around it in memory."""

    def __init__(self, right: int = MANY + 1) -> None:
        self.tables, self.lineage = Counting(), MemoryLineage()
        self.journal, self.lost_rows = MemoryJournal(lambda: NOW), MemoryLostRows()
        self.published: list[Wake] = []
        self.now = NOW
        listed = self.tables.rows.setdefault(PROJECTION.name, {})
        for uid in range(MANY):
            listed[Slot(MAILBOX, uid)] = self.a_row(uid)
        for uid in range(RIGHT, RIGHT + right):
            listed[Slot(MAILBOX, uid)] = self.a_row(uid)
            self.tables.truths[message(uid)] = (self.a_row(uid),)

    def a_row(self, uid: int, at: Micros = LONG_AGO) -> Row:
        return row(messageid=message(uid), uid=uid, at=at)

    def examiner(self) -> Examiner:
        together = AcceptedTogether(FAMILY, self.journal, self.lost_rows)
        return Examiner(
            PROJECTION,
            self.tables,
            Confirmer(FAMILY, PROJECTION, self.tables, self.lineage, DELAY),
            self.journal,
            self.published.extend,
            lambda: self.now,
            RULES,
            together,
        )

    def suspect(self, uid: int) -> Suspect:
        return suspect_at(uid, Kind.EXTRA_ROW, [message(uid)])

    def sift(self, *uids: int, at: Micros = NOW) -> SiftedRows:
        past = PastRows(self.examiner(), self.tables, self.lost_rows, FEW)
        return past.sift([self.suspect(uid) for uid in uids or range(MANY)], at)

    def handed_over(self, uid: int) -> bool:
        """Whether this one is, and all others are left."""
        sifted = self.sift()
        assert sum(each.rows for each in sifted.left.values()) >= MANY - 1
        return [each.slot.key[1] for each in sifted.handed_over] == [uid]

    def tell(self, reason: Kind, at: Micros = NOW) -> Finding:
        found = together(FAMILY, LostRows(reason, MANY, 1), at)
        self.journal.put(found)
        return found

    def accept(self, reason: Kind) -> None:
        place = place_of(FAMILY, reason)
        found = self.journal.recall(FAMILY, PROJECTION.name, [place])[place]
        self.journal.accept(accepted(found, self.now))

    def examine(self, uid: int) -> Outcome:
        """As the stream does, a delay after the first look."""
        suspect = replace(self.suspect(uid), looked_again=True, suspected=Kind.EXTRA_ROW)
        *_, outcome = self.examiner().examine([suspect], permit(), f"batch {uid}")
        return outcome


# --- which are left


@pytest.fixture
def past() -> Past:
    return Past()


def test_orphans_without_any_delete_are_left_for_one_reason_by_few_reads(past: Past) -> None:
    sifted = past.sift()
    assert sifted.handed_over == []
    (left,) = sifted.left.values()
    assert list(sifted.left) == [AMBIGUOUS]
    assert (left.rows, left.groups, len(left.suspects)) == (MANY, {MAILBOX}, FEW + 1)
    assert past.tables.reads == {"listing": 1, "truth": 1}
    assert {each.slot.key[1] for each in past.lost_rows.all(FAMILY)} == set(range(MANY))
    assert past.tables.applied == []
    assert past.published == []


def test_those_that_the_truth_had_are_left_for_a_reason_of_their_own(past: Past) -> None:
    past.lineage.remember(
        [Entry(message(uid), Slot(MAILBOX, uid), True, LONG_AGO) for uid in range(10)]
    )
    left = past.sift().left
    assert {reason: each.rows for reason, each in left.items()} == {
        ABSENT: 10,
        AMBIGUOUS: MANY - 10,
    }


def test_those_of_a_mailbox_that_has_lost_most_of_its_truth_as_well() -> None:
    sifted = Past(right=MANY - 1).sift()
    assert list(sifted.left) == [Kind.MAILBOX_WITHOUT_TRUTH]


def test_one_that_names_no_message_is_left_until_the_truth_is_read(past: Past) -> None:
    past.tables.rows[PROJECTION.name][Slot(MAILBOX, 5)] = row(messageid=None, uid=5)
    suspect = replace(past.suspect(5), sources=frozenset())
    sifted = PastRows(past.examiner(), past.tables, past.lost_rows, FEW).sift([suspect], NOW)
    assert list(sifted.left) == [Kind.UNRESOLVED]


def own(uid: int, **changes: Any) -> Finding:
    return finding_at(uid, **{"kind": AMBIGUOUS, "state": State.REPORTED, **changes})


def accept_own(past: Past, finding: Finding) -> None:
    past.journal.put(finding)
    past.journal.accept(accepted(finding, past.now))


AT_5 = Slot(MAILBOX, 5)
HANDED_OVER: dict[str, Callable[[Past], object]] = {
    "the delete of its message was heard": lambda past: past.lineage.remember_deletes(
        [TruthDelete(message(5), (MAILBOX, None), NOW)]
    ),
    "the delete of its row was heard": lambda past: past.lineage.remember_deletes(
        [ProjectionDelete(AT_5, NOW)]
    ),
    "it was written within the delay": lambda past: past.tables.rows[PROJECTION.name].update(
        {AT_5: past.a_row(5, at=NOW - SECOND)}
    ),
    "the truth has it by now": lambda past: past.tables.truths.update(
        {message(5): (past.a_row(5),)}
    ),
    "it is on hold": lambda past: past.journal.holds.place(
        Hold(FAMILY.name, PROJECTION.name, AT_5, NOW, "ana", "hers")
    ),
    "it cannot be read": lambda past: setattr(past.tables, "bad", {AT_5}),
    "another reason in its finding": lambda past: past.journal.put(own(5, kind=ABSENT)),
    "its finding is held": lambda past: past.journal.put(own(5, state=State.HELD)),
    "its finding is accepted": lambda past: accept_own(past, own(5)),
}


@pytest.mark.parametrize("why", HANDED_OVER)
def test_one_that_can_be_judged_or_is_another_matter_is_handed_over(past: Past, why: str) -> None:
    HANDED_OVER[why](past)
    assert past.handed_over(5)


def test_one_that_evidence_decides_is_handed_over(past: Past) -> None:
    """The truth never had this UID, says memory, which was whole before the row was written."""
    elsewhere = [Entry(message(uid), Slot(ELSEWHERE, uid), True, NOW) for uid in range(MANY)]
    past.lineage.remember(elsewhere)
    past.lineage.watch_from(LONG_AGO - 1_000 * SECOND)
    past.lineage.mark_swept(LONG_AGO - 900 * SECOND, LONG_AGO - 1_000 * SECOND)
    sifted = past.sift()
    assert len(sifted.handed_over) == MANY
    assert sifted.left == {}


def test_one_whose_own_finding_says_the_same_is_neither_left_nor_handed_over(past: Past) -> None:
    """Else a sweep would hand over again, at 50 a minute, all that an earlier version reported."""
    for uid in range(10):
        past.journal.put(own(uid))
    sifted = past.sift()
    assert sifted.handed_over == []
    assert sifted.left[AMBIGUOUS].rows == MANY - 10
    piece = SweptPiece(Piece(FAMILY.listing.table, range(1), 1, 5_000))
    piece.take(sifted)
    assert piece.differ == MANY, "they are still said to differ"


def test_where_a_mailbox_cannot_be_read_as_a_whole_its_rows_wait_for_a_word_on_that(
    past: Past,
) -> None:
    past.tables.scan_fails = ReadFailed("too many tombstones")
    assert list(past.sift().left) == [Kind.MAILBOX_WITHOUT_TRUTH]


def test_what_is_no_orphan_of_the_listing_is_handed_over_without_a_read(past: Past) -> None:
    others = [
        replace(past.suspect(1), kind=Kind.MISSING_ROW),
        replace(past.suspect(2), projection="unseen_uids"),
        replace(past.suspect(3), unreadable="tombstones"),
    ]
    sifted = PastRows(past.examiner(), past.tables, past.lost_rows, FEW).sift(others, NOW)
    assert sifted.handed_over == others
    assert past.tables.reads == {}


# --- what a person has accepted


def test_what_was_counted_before_it_was_accepted_is_handed_over_and_removed(past: Past) -> None:
    past.sift()
    past.tell(AMBIGUOUS)
    past.accept(AMBIGUOUS)
    sifted = past.sift(at=NOW + SECOND)
    assert (len(sifted.handed_over), sifted.left) == (MANY, {})
    assert sifted.covered == {AMBIGUOUS: MANY}
    assert past.examine(5).action is Action.REPAIR
    (removed,) = past.tables.applied
    assert removed.slot == Slot(MAILBOX, 5)
    assert past.tables.reads["serial"] == 1


def test_a_row_that_is_found_after_that_is_left_and_never_removed(past: Past) -> None:
    past.sift(*range(10))
    past.tell(AMBIGUOUS)
    past.accept(AMBIGUOUS)
    sifted = past.sift(at=NOW + SECOND)
    assert len(sifted.handed_over) == 10
    assert sifted.left[AMBIGUOUS].rows == MANY - 10
    assert past.examine(20).action is Action.REPORT
    assert past.tables.applied == []
    past.tell(AMBIGUOUS, NOW + SECOND)
    past.accept(AMBIGUOUS)
    assert past.examine(20).action is Action.REPAIR


def test_a_row_whose_reason_is_another_one_by_now_is_not_removed(past: Past) -> None:
    past.sift()
    past.tell(AMBIGUOUS)
    past.accept(AMBIGUOUS)
    past.lineage.remember(
        [Entry(message(uid), Slot(MAILBOX, uid), True, LONG_AGO) for uid in (5, 7)]
    )
    assert past.examine(5).action is Action.REPORT
    past.lineage.remember_deletes([TruthDelete(message(6), (MAILBOX, None), NOW)])
    assert past.examine(6).action is Action.REPORT
    assert past.tables.applied == []
    sifted = past.sift(at=NOW + SECOND)
    assert sifted.left[ABSENT].rows == 1


def test_a_row_that_nobody_has_accepted_is_not_removed(past: Past) -> None:
    past.sift()
    past.tell(AMBIGUOUS)
    assert past.examine(5).action is Action.REPORT
    assert past.tables.applied == []


def test_a_row_that_later_gets_evidence_is_repaired_by_that(past: Past) -> None:
    past.sift()
    past.tell(AMBIGUOUS)
    past.lineage.remember_deletes([ProjectionDelete(Slot(MAILBOX, 5), NOW)])
    assert past.examine(5).action is Action.REPAIR


def test_where_a_mailbox_has_lost_most_since_its_rows_wait_for_a_word_on_that(past: Past) -> None:
    past.sift()
    past.tell(AMBIGUOUS)
    past.accept(AMBIGUOUS)
    past.tables.truths.clear()
    outcome = past.examine(5)
    assert outcome.finding is not None
    assert outcome.finding.kind is Kind.MAILBOX_WITHOUT_TRUTH
    assert past.tables.applied == []


def test_those_of_such_a_mailbox_are_removed_once_that_is_accepted() -> None:
    past = Past(right=0)
    past.sift()
    past.tell(Kind.MAILBOX_WITHOUT_TRUTH)
    past.accept(Kind.MAILBOX_WITHOUT_TRUTH)
    assert past.examine(5).action is Action.REPAIR


def test_a_row_is_counted_when_it_was_found_first_and_seen_when_last(past: Past) -> None:
    past.sift(5, at=NOW)
    past.sift(5, at=NOW + 7)
    assert list(past.lost_rows.all(FAMILY)) == [LostRow(Slot(MAILBOX, 5), AMBIGUOUS, NOW, NOW + 7)]
