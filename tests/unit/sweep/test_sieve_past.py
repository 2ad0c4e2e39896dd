"""Rows of the past in a sweep: few are handed over, of many one finding tells, for each reason."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoints.sweeps import RangeKey, SweptRange
from reconcilers.rows.decision import accepted
from reconcilers.rows.finding import Finding, State
from reconcilers.sweep.lost_rows import LostRow, place_of
from reconcilers.words.model import Kind, Slot, Suspect
from streaming.again.past import LeftRows
from streaming.again.pieces import SweptPiece
from tests.builders.rows import MAILBOX, NOW
from tests.builders.sieves import FEW
from tests.unit.sweep.test_sieve import (
    FAMILY,
    LISTING,
    SWEEP,
    TRUTH,
    Scene,
    piece,
    places,
)

AMBIGUOUS, ABSENT = Kind.AMBIGUOUS_RANGE_DELETE, Kind.ABSENT_WITHOUT_DELETE
LATER = replace(SWEEP, began_at=NOW + 1_000)
OTHER = UUID("11111111-0000-1000-8000-000000000002")


def orphan(uid: int, mailbox: UUID = MAILBOX) -> Suspect:
    return Suspect(Slot(mailbox, uid), frozenset(), Kind.EXTRA_ROW, "messages")


def left(*uids: int, mailbox: UUID = MAILBOX) -> LeftRows:
    made = LeftRows(FEW)
    for uid in uids:
        made.add(orphan(uid, mailbox))
    return made


def past(number: int, reasons: dict[Kind, LeftRows], table: str = LISTING) -> SweptPiece:
    rows = sum(each.rows for each in reasons.values())
    return replace(piece(number, rows, (), table), left=reasons)


def swept(scene: Scene, *pieces: SweptPiece) -> set[RangeKey]:
    """A whole listing; the ranges that are done by its end."""
    done = set(scene.sieve.take(pieces))
    return done | set(scene.sieve.table_ended(LISTING))


def of_reason(scene: Scene, reason: Kind) -> Finding:
    (found,) = [each for each in scene.findings() if each.slot == place_of(FAMILY, reason)]
    return found


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_few_wait_until_the_table_ends_and_are_handed_over_one_by_one(scene: Scene) -> None:
    assert scene.sieve.take([past(0, {AMBIGUOUS: left(1, 2)})]) == {}
    assert scene.sieve.take([past(1, {AMBIGUOUS: left(3)}), piece(2, 9, (), LISTING)]).keys() == (
        places(2, table=LISTING)
    )
    assert not scene.published
    done = scene.sieve.table_ended(LISTING)
    assert done == {(LISTING, 0): SweptRange(2, 2), (LISTING, 1): SweptRange(1, 1)}
    assert scene.uids() == [1, 2, 3]
    assert scene.findings() == []


def test_of_more_one_finding_tells_and_none_is_handed_over(scene: Scene) -> None:
    assert scene.sieve.take([past(0, {AMBIGUOUS: left(1, 2)})]) == {}
    done = scene.sieve.take([past(1, {AMBIGUOUS: left(3, 4, mailbox=OTHER)})])
    assert done.keys() == places(0, 1, table=LISTING)
    scene.sieve.take([past(2, {AMBIGUOUS: left(*range(10, 60))})])
    scene.sieve.table_ended(LISTING)
    assert not scene.published
    (found,) = scene.findings()
    assert (found.kind, found.state) == (Kind.PAST_ROWS, State.REPORTED)
    assert "lacks 54 rows of 2 mailboxes" in found.sentence
    assert f"{MAILBOX}/1, {MAILBOX}/2, {OTHER}/3 among them" in found.sentence
    assert scene.logged() == ["reported"]


def test_each_reason_has_a_finding_of_its_own(scene: Scene) -> None:
    swept(scene, past(0, {AMBIGUOUS: left(*range(9)), ABSENT: left(*range(20, 22))}))
    assert scene.uids() == [20, 21]
    assert [each.slot for each in scene.findings()] == [place_of(FAMILY, AMBIGUOUS)]


def test_the_rows_that_an_index_shows_again_are_not_counted_twice(scene: Scene) -> None:
    swept(scene, past(0, {AMBIGUOUS: left(*range(9))}))
    for number in range(3):
        again = past(number, {AMBIGUOUS: left(number)}, "messagedeleted")
        assert scene.sieve.take([again]).keys() == places(number, table="messagedeleted")
    scene.sieve.table_ended("messagedeleted")
    assert not scene.published
    assert "lacks 9 rows" in of_reason(scene, AMBIGUOUS).sentence


def test_a_sweep_that_goes_on_leaves_what_it_has_told_of_however_few_are_left(scene: Scene) -> None:
    scene.sieve.take([past(0, {AMBIGUOUS: left(*range(9))})])
    scene.now += 5
    scene.begun()
    swept(scene, past(1, {AMBIGUOUS: left(20)}))
    assert not scene.published
    assert len(scene.findings()) == 1


def test_its_finding_ends_with_a_sweep_that_finds_few(scene: Scene) -> None:
    swept(scene, past(0, {AMBIGUOUS: left(*range(9))}))
    scene.now += 2_000
    scene.begun(LATER)
    swept(scene, past(0, {AMBIGUOUS: left(1)}))
    scene.sieve.ended(LATER)
    assert scene.uids() == [1]
    assert scene.findings() == []
    assert scene.logged() == ["reported", "healed"]


def test_an_accepted_one_stays_while_its_rows_are_handed_over_and_ends_after_that(
    scene: Scene,
) -> None:
    swept(scene, past(0, {AMBIGUOUS: left(*range(9))}))
    scene.accept()
    scene.begun(LATER)
    handed = replace(piece(0, 9, map(orphan, range(9)), LISTING))
    handed.covered[AMBIGUOUS] = 9
    swept(scene, handed)
    assert len(scene.published) == 9
    assert list(scene.sieve.lines()) == [
        "rows of the past, ambiguous_range_delete: 9 accepted, and handed over"
    ]
    scene.sieve.ended(LATER)
    assert of_reason(scene, AMBIGUOUS).accepted
    scene.begun(LATER)
    swept(scene, piece(0, 0, (), LISTING))
    scene.sieve.ended(LATER)
    assert scene.findings() == []


def test_what_is_found_after_an_acceptance_is_told_and_what_was_accepted_stays_so(
    scene: Scene,
) -> None:
    swept(scene, past(0, {AMBIGUOUS: left(*range(9))}))
    scene.accept()
    before = of_reason(scene, AMBIGUOUS)
    scene.now += 2_000
    scene.begun(LATER)
    swept(scene, past(0, {AMBIGUOUS: left(*range(100, 120))}))
    after = of_reason(scene, AMBIGUOUS)
    assert not scene.published
    assert "lacks 20 rows" in after.sentence
    assert "found after what a person has accepted" in after.sentence
    assert (after.accepted, before.accepted_at) == (before.accepted, NOW)
    assert accepted(after, scene.now).accepted_at == scene.now


def test_rows_that_a_whole_sweep_does_not_find_any_more_are_forgotten(scene: Scene) -> None:
    gone = LostRow(Slot(MAILBOX, 1), AMBIGUOUS, NOW, NOW)
    still = LostRow(Slot(MAILBOX, 2), AMBIGUOUS, NOW, LATER.began_at + 5)
    scene.lost_rows.keep(FAMILY, [gone, still])
    scene.begun(LATER)
    scene.sieve.ended(LATER)
    assert list(scene.lost_rows.all(FAMILY)) == [still]


PIECES = st.lists(st.lists(st.sampled_from([AMBIGUOUS, ABSENT]), max_size=4), max_size=10)


@given(PIECES, st.integers(1, 4))
def test_each_is_handed_over_or_left_once_and_each_piece_is_done_once(
    found: list[list[Kind]], at_once: int
) -> None:
    scene, uid, made, kinds = Scene(), 0, list[SweptPiece](), dict[int, Kind]()
    for number, reasons in enumerate(found):
        some: dict[Kind, LeftRows] = {}
        for reason in reasons:
            some.setdefault(reason, LeftRows(FEW)).add(orphan(uid))
            kinds[uid] = reason
            uid += 1
        made.append(past(number, some, TRUTH))
    done = list[RangeKey]()
    for start in range(0, len(made), at_once):
        done += scene.sieve.take(made[start : start + at_once])
    done += scene.sieve.table_ended(TRUTH)
    numbers = {reason: list(kinds.values()).count(reason) for reason in (AMBIGUOUS, ABSENT)}
    few = {reason for reason, number in numbers.items() if number <= FEW}
    assert sorted(done) == [(TRUTH, number) for number in range(len(made))]
    assert scene.uids() == [uid for uid, reason in kinds.items() if reason in few]
    told = {place_of(FAMILY, reason) for reason, number in numbers.items() if number > FEW}
    assert {each.slot for each in scene.findings()} == told
