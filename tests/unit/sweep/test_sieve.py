"""What a sweep hands over, what waits, and what it leaves: of many rows alike one finding tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.sweeps import RangeKey, SweepRecord, SweptRange
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import keeping
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Finding, State
from reconcilers.sweep import systematic as rule
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Micros, Slot, Suspect
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.sieve import Sieve
from tests.builders.rows import MAILBOX, NOW
from tests.builders.sieves import sieve
from tests.fakes.checkpoints.lost_rows import MemoryLostRows
from tests.fakes.checkpoints.memory import MemoryJournal

FAMILY = keeping(MESSAGE, ["messages"])
TRUTH, LISTING = FAMILY.truth.table, FAMILY.listing.table
THREAD, SEEN, DATE = ("threadid",), ("flagseen",), ("save_date",)
SWEEP = SweepRecord(NOW, "alice", "", FAMILY.names, 64)


def differing(uid: int, columns: tuple[str, ...] = THREAD) -> Suspect:
    kind = Kind.DIFFERING_CELLS if columns else Kind.MISSING_ROW
    return Suspect(Slot(MAILBOX, uid), frozenset(), kind, "messages", columns=columns)


def piece(
    number: int, rows: int, suspects: Iterable[Suspect] = (), table: str = TRUTH
) -> SweptPiece:
    return SweptPiece(Piece(table, range(number, number + 1), 64, 5_000), rows, list(suspects))


def many(first: int, count: int, columns: tuple[str, ...] = THREAD) -> list[Suspect]:
    return [differing(uid, columns) for uid in range(first, first + count)]


@dataclass
class Scene:
    """Sieves over one journal; ``published`` is what they handed over."""

    journal: MemoryJournal = field(default_factory=lambda: MemoryJournal(lambda: NOW))
    published: list[Suspect] = field(default_factory=list)
    now: int = NOW
    lost_rows: MemoryLostRows = field(default_factory=MemoryLostRows)

    def __post_init__(self) -> None:
        self.sieve = self.begun()

    def begun(self, sweep: SweepRecord = SWEEP) -> Sieve:
        """As a new process makes it."""
        self.sieve = sieve(self, self.journal, lambda: self.now, self.lost_rows)
        self.sieve.begin(sweep, 0)
        return self.sieve

    def publish(self, suspects: Sequence[Suspect]) -> None:
        self.published += suspects

    def resume(self, suspects: int, since: Micros) -> None:
        pass

    def settled(self) -> bool:
        return True

    def revisit(self) -> None:
        pass

    def findings(self) -> list[Finding]:
        return list(self.journal.open_findings(FAMILY))

    def accept(self) -> None:
        (found,) = self.findings()
        self.journal.accept(accepted(found, self.now))

    def logged(self) -> list[object]:
        return [line["state"] for line in self.journal.log_at(NOW)]

    def uids(self) -> Sequence[object]:
        return sorted(each.slot.key[1] for each in self.published)


def places(*numbers: int, table: str = TRUTH) -> set[RangeKey]:
    return {(table, number) for number in numbers}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_what_differs_in_few_rows_is_handed_over_at_once(scene: Scene) -> None:
    done = scene.sieve.take([piece(0, 10_000, many(0, 100))])
    assert done == {(TRUTH, 0): SweptRange(10_000, 100)}
    assert len(scene.published) == 100
    assert not scene.findings()


def test_a_missing_row_is_handed_over_however_many_there_are(scene: Scene) -> None:
    scene.sieve.take([piece(0, 3_000, many(0, 3_000, ()))])
    assert len(scene.published) == 3_000
    assert not scene.findings()


def test_of_a_column_that_differs_in_many_rows_one_finding_tells_and_nothing_is_handed_over(
    scene: Scene,
) -> None:
    assert scene.sieve.take([piece(0, 1_500, many(0, 600))]) == {}
    done = scene.sieve.take([piece(1, 1_500, many(600, 600))])
    assert done.keys() == places(0, 1)
    assert not scene.published
    (found,) = scene.findings()
    assert (found.kind, found.state) == (Kind.SYSTEMATIC, State.HELD)
    assert found.sentence.startswith(
        "differing_cells in threadid: 1200 of 3000 rows of messages that were compared (40 %),"
        f" {MAILBOX}/0, {MAILBOX}/1, {MAILBOX}/2 among them"
    )
    assert len(list(scene.journal.history(FAMILY, "messages", found.slot))) == 1


def test_the_ordinary_ones_among_them_are_handed_over(scene: Scene) -> None:
    """Also a row of the many in which something else differs: its repair makes it right."""
    ordinary = [differing(5_000, SEEN), differing(5_001, (*SEEN, *THREAD)), differing(5_002, ())]
    scene.sieve.take([piece(0, 3_000, [*many(0, 1_200), *ordinary])])
    assert scene.uids() == [5_000, 5_001, 5_002]


def test_a_row_that_follows_several_patterns_is_left_when_each_is_systematic(scene: Scene) -> None:
    scene.sieve.take([piece(0, 3_000, [*many(0, 1_100), *many(2_000, 1_100, (*THREAD, *DATE))])])
    assert not scene.published
    assert len(scene.findings()) == 2


def test_the_numbers_of_the_finding_grow_and_it_stays_one(scene: Scene) -> None:
    scene.sieve.take([piece(0, 1_000, many(0, 1_000))])
    (first,) = scene.findings()
    scene.now += 1
    scene.sieve.take([piece(1, 1_000, many(1_000, 200))])
    scene.sieve.table_ended(TRUTH)
    (found,) = scene.findings()
    assert "1200 of 2000 rows" in found.sentence
    assert (found.found_at, found.slot) == (first.found_at, first.slot)
    assert scene.logged() == ["held"]


def test_what_is_in_fewer_than_a_thousand_rows_is_handed_over_at_the_end_of_the_table(
    scene: Scene,
) -> None:
    assert scene.sieve.take([piece(0, 999, many(0, 999)), piece(1, 1)]).keys() == places(1)
    assert not scene.published
    assert scene.sieve.table_ended(TRUTH) == {(TRUTH, 0): SweptRange(999, 999)}
    assert len(scene.published) == 999
    assert not scene.findings()
    assert scene.sieve.table_ended(LISTING) == {}


def test_what_waits_is_handed_over_when_it_turns_out_to_be_rare(scene: Scene) -> None:
    assert scene.sieve.take([piece(0, 100, many(0, 50))]) == {}
    assert scene.sieve.take([piece(1, 5_000)]).keys() == places(0, 1)
    assert len(scene.published) == 50


def test_what_was_systematic_in_the_truth_is_left_in_the_listing_from_its_first_row_on(
    scene: Scene,
) -> None:
    scene.sieve.take([piece(0, 3_000, many(0, 1_200))])
    scene.sieve.table_ended(TRUTH)
    for number in range(10):
        rows = piece(number, 300, many(120 * number, 120), LISTING)
        assert scene.sieve.take([rows]).keys() == places(number, table=LISTING)
        (line,) = scene.sieve.lines()
        assert "1200 of 3000 rows" in line
    scene.sieve.table_ended(LISTING)
    assert not scene.published
    (found,) = scene.findings()
    assert "1200 of 3000 rows" in found.sentence


def test_a_piece_that_was_not_read_whole_is_never_done(scene: Scene) -> None:
    unread = piece(0, 100, many(0, 50))
    unread.unread = [(unread.piece.tokens, "tombstones")]
    assert scene.sieve.take([unread]) == {}
    assert scene.sieve.table_ended(TRUTH) == {}
    assert len(scene.published) == 50


# --- a person's hand


def test_what_is_accepted_is_handed_over_by_the_next_sweep(scene: Scene) -> None:
    scene.sieve.take([piece(0, 3_000, many(0, 1_200))])
    scene.accept()
    scene.begun(replace(SWEEP, began_at=NOW + 10))
    assert scene.sieve.take([piece(0, 1_500, many(0, 600))]).keys() == places(0)
    scene.sieve.take([piece(1, 1_500, many(600, 600))])
    assert len(scene.published) == 1_200


def test_its_finding_ends_when_a_sweep_has_found_the_listing_right(scene: Scene) -> None:
    scene.sieve.take([piece(0, 3_000, many(0, 1_200))])
    scene.accept()
    scene.begun()
    scene.sieve.take([piece(0, 3_000, many(0, 1_200))])
    scene.sieve.table_ended(TRUTH)
    scene.sieve.take([piece(0, 3_000, many(0, 2), LISTING)])
    scene.sieve.table_ended(LISTING)
    scene.sieve.ended(SWEEP)
    assert not scene.findings()
    assert scene.logged() == ["held", "held", "healed"]


def test_and_stays_accepted_while_what_was_handed_over_is_not_repaired(scene: Scene) -> None:
    """No stream runs, or it only observes: the next sweep hands them over once more."""
    scene.sieve.take([piece(0, 3_000, many(0, 1_200))])
    scene.accept()
    for _ in range(2):
        scene.begun()
        scene.published.clear()
        for table in (TRUTH, LISTING, "messagedeleted"):
            scene.sieve.take([piece(0, 3_000, many(0, 1_200), table)])
            scene.sieve.table_ended(table)
        scene.sieve.ended(SWEEP)
        (found,) = scene.findings()
        assert found.accepted
        assert len(scene.published) == 3 * 1_200
    (line,) = scene.sieve.lines()
    assert line.endswith(": accepted, and handed over")


def test_an_acceptance_while_a_sweep_goes_on_is_kept_for_the_next(scene: Scene) -> None:
    scene.sieve.take([piece(0, 1_000, many(0, 1_000))])
    scene.accept()
    scene.sieve.take([piece(1, 1_000, many(1_000, 1_000))])
    scene.sieve.table_ended(TRUTH)
    scene.sieve.ended(SWEEP)
    assert not scene.published
    (found,) = scene.findings()
    assert found.accepted


def test_a_finding_of_before_ends_when_it_is_systematic_no_more_and_what_is_left_goes_over(
    scene: Scene,
) -> None:
    scene.sieve.take([piece(0, 3_000, many(0, 1_200))])
    scene.begun(replace(SWEEP, began_at=NOW + 10))
    scene.sieve.take([piece(0, 3_000, many(0, 40))])
    scene.sieve.table_ended(TRUTH)
    scene.sieve.ended(SWEEP)
    assert len(scene.published) == 40
    assert not scene.findings()


def test_the_report_names_it_and_what_is_typed(scene: Scene) -> None:
    scene.sieve.take([piece(0, 3_000, many(0, 1_200))])
    (found,) = scene.findings()
    assert list(scene.sieve.lines()) == [
        "systematic: differing_cells in threadid: 1200 of 3000 rows of messages that were compared"
        f" (40 %): left, until `reconcile findings --accept {text_of(found.slot)}"
        " --system messages`"
    ]


# --- killed, and gone on with


def test_a_sweep_that_goes_on_leaves_what_it_has_told_of_however_few_are_left(scene: Scene) -> None:
    scene.sieve.take([piece(0, 2_000, many(0, 1_100))])
    scene.now += 5
    scene.begun()
    assert scene.sieve.take([piece(1, 1_000, many(1_100, 100))]).keys() == places(1)
    scene.sieve.table_ended(TRUTH)
    assert not scene.published
    (found,) = scene.findings()
    assert "1100 of 2000 rows" in found.sentence


def test_what_waited_when_it_was_killed_is_compared_again(scene: Scene) -> None:
    assert scene.sieve.take([piece(0, 1_000, many(0, 900))]) == {}
    scene.begun()
    done = scene.sieve.take([piece(0, 1_000, many(0, 900)), piece(1, 1_000, many(900, 100))])
    assert done.keys() == places(0, 1)
    assert not scene.published
    assert len(scene.findings()) == 1


# --- whatever is found, in whatever order

COLUMNS = st.sets(st.sampled_from(["threadid", "flagseen", "save_date"]), max_size=2)
PIECES = st.lists(st.tuples(st.integers(0, 30), st.lists(COLUMNS, max_size=12)), max_size=12)


@given(PIECES, st.integers(1, 4))
def test_each_is_handed_over_or_left_once_and_only_what_is_systematic_is_left(
    found: list[tuple[int, list[set[str]]]], at_once: int
) -> None:
    least, one_in = 5, 4
    scene, uid = Scene(), 0
    pieces: list[SweptPiece] = []
    for number, (right, differ) in enumerate(found):
        suspects = [differing(uid + each, tuple(sorted(of))) for each, of in enumerate(differ)]
        pieces.append(piece(number, right + len(differ), suspects))
        uid += len(differ)
    told: set[str] = set()
    done: set[RangeKey] = set()
    with patch.object(rule, "LEAST_ROWS", least), patch.object(rule, "ONE_IN", one_in):
        for start in range(0, len(pieces), at_once):
            done |= scene.sieve.take(pieces[start : start + at_once]).keys()
            told |= systematic_by_hand(pieces[: start + at_once], least, one_in)
            assert {pattern.column for pattern in scene.sieve.systematic.told} == told
            waiting = scene.sieve._counts[TRUTH].waiting
            assert sum(len(some.suspects) for some in waiting) < least * 3
            assert not done & {some.place for some in waiting}
        done |= scene.sieve.table_ended(TRUTH).keys()
    assert done == {(TRUTH, each.piece.numbers.start) for each in pieces}
    assert len(scene.published) == len(set(scene.uids()))
    for suspect in (suspect for each in pieces for suspect in each.suspects):
        if suspect not in scene.published:
            assert suspect.columns
            assert set(suspect.columns) <= told


def systematic_by_hand(pieces: Sequence[SweptPiece], least: int, one_in: int) -> set[str]:
    rows = sum(each.rows for each in pieces)
    columns = [column for each in pieces for one in each.suspects for column in one.columns]
    return {each for each in columns if columns.count(each) >= max(least, rows // one_in + 1)}
