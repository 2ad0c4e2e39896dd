"""How much a sweep reads at once: few ranges and queries of a small table, bounded pieces else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.declared.raw import BIGINT, RawCell, RawRow
from reconcilers.words.errors import Unreachable
from reconcilers.words.tokens import FIRST, LAST, range_of
from streaming.again import pieces
from streaming.again import rounds as module
from streaming.again.pieces import Piece, PieceEnd, SweptPiece
from streaming.again.rounds import (
    AT_FIRST,
    FEWEST_ROWS,
    MOST_PIECES,
    RoundSize,
    SweepRounds,
    fewest_at,
    ranges_for,
)
from tests.unit.sweep.test_sweeper import NOW, SWEEP, TABLES, Scene

RANGES, PAGE = 512, 5_000


def token(cell: RawCell) -> int:
    found: int = BIGINT.unpack(cell or b"")[0]
    return found


@dataclass
class Ring:
    """Tables by the tokens of their rows; ``queries`` counts pages, ``pieces`` what was scanned."""

    tables: dict[str, list[int]]
    pieces: list[Piece] = field(default_factory=list)
    rounds: int = 0
    queries: Counter[str] = field(default_factory=Counter)
    rows: Counter[tuple[str, int]] = field(default_factory=Counter)
    most: int = 0
    fails: int = RANGES
    """Pieces of more ranges are not answered."""
    silent: set[tuple[str, int]] = field(default_factory=set)
    """Nor are pieces with one of these ranges."""

    def scan(self, pieces: Sequence[Piece]) -> Sequence[SweptPiece]:
        self.rounds += 1
        self.pieces += pieces
        return [self._scanned(each) for each in pieces]

    def _scanned(self, piece: Piece) -> SweptPiece:
        found = SweptPiece(piece)
        silent = {(piece.table, number) for number in piece.numbers} & self.silent
        if silent or len(piece.numbers) > self.fails:
            return replace(found, failed=Unreachable("timed out"))
        for page in PieceEnd(found, token, itemgetter(0)).pages(self._pages(piece)):
            found.rows += len(page)
            self.rows.update((piece.table, token(row[0])) for row in page)
        self.most = max(self.most, found.rows)
        return found

    def _pages(self, piece: Piece) -> Sequence[Sequence[RawRow]]:
        tokens = piece.tokens
        inside = (each for each in self.tables[piece.table] if tokens.after < each <= tokens.until)
        rows = [(BIGINT.pack(each),) for each in sorted(inside)]
        pages = [rows[at : at + PAGE] for at in range(0, len(rows), PAGE)] or [[]]
        self.queries[piece.table] += len(pages)
        return pages

    def read(self) -> None:
        rounds = SweepRounds(self.scan, self, lambda _: None, lambda: NOW)
        rounds.read(
            {table: range(RANGES) for table in self.tables}, RANGES, lambda _: None, lambda _: None
        )

    def table(self, name: str, done: int, ranges: int) -> None: ...
    def round(self, ranges: int, rows: int, suspects: int) -> None: ...
    def waiting(self, why: str) -> None: ...


def spread(rows: int) -> list[int]:
    return [FIRST + (LAST - FIRST) // rows * number + 1 for number in range(rows)]


def test_a_small_keyspace_is_read_in_a_round_and_four_pieces_of_each_table() -> None:
    ring = Ring({"listing": spread(2_000), "index": spread(10), "empty": []})
    ring.read()
    assert ring.rounds == 1
    assert Counter(each.table for each in ring.pieces) == dict.fromkeys(ring.tables, AT_FIRST)
    assert ring.queries == dict.fromkeys(ring.tables, AT_FIRST)
    assert set(ring.rows.values()) == {1}


def test_a_sweep_of_a_small_keyspace_has_two_rounds_and_ahead_three() -> None:
    scene = Scene(at_once=RANGES)
    for number in range(2):
        scene.sweeps.begin(replace(SWEEP, began_at=NOW + number, ranges=RANGES))
        scene.scanned.clear()
        scene.run()
        assert len(scene.scanned) == AT_FIRST * (len(TABLES) + number)


def test_a_large_table_is_read_in_pieces_that_end_with_ranges() -> None:
    """Also where all of a table has a few tokens, and where most of it is in one range."""
    few = [7] * 12_000 + [2**62] * 12_000
    ring = Ring({"even": spread(60_000), "few": few, "one": [*range(20_000), *spread(100)]})
    ring.read()
    assert ring.rows == Counter(
        (table, each) for table, tokens in ring.tables.items() for each in tokens
    )
    assert len(ring.pieces) < RANGES, "it is read in fewer pieces than it has ranges"
    assert max(Counter(each.table for each in ring.pieces[-MOST_PIECES:]).values()) <= MOST_PIECES


def test_a_piece_holds_its_rows_and_those_of_its_last_range() -> None:
    tokens, numbers = spread(100_000), range(RANGES)
    ring = Ring({"even": tokens})
    for most in (1, FEWEST_ROWS, 40_000):
        found = ring._scanned(Piece("even", numbers, RANGES, most))
        a_range = len(tokens) / RANGES
        assert most - a_range - 1 <= found.rows <= most + PAGE + a_range
        assert round(found.rows / a_range) == found.piece.numbers.stop < RANGES


@given(st.sets(st.integers(0, 60)), st.integers(1, 9), st.integers(1, 70))
def test_what_is_left_is_cut_into_few_long_pieces(
    left: set[int], pieces: int, longest: int
) -> None:
    cut = RoundSize(longest, FEWEST_ROWS, pieces).cut(left)
    numbers = [number for some in cut for number in some]
    assert len(cut) <= pieces
    assert all(cut)
    assert len(numbers) == len(set(numbers))
    assert set(numbers) <= left
    assert max(map(len, cut), default=0) <= longest
    if len(cut) < pieces:
        assert set(numbers) == left
        assert all(len(some) == 1 for some in cut), "more could be read at the same time"


def test_where_no_answer_comes_the_pieces_are_shorter_until_one_does() -> None:
    ring = Ring({"listing": spread(2_000)}, fails=3)
    ring.read()
    assert set(ring.rows.values()) == {1}
    assert len(ring.rows) == 2_000


def test_where_no_answer_ever_comes_it_ends() -> None:
    ring = Ring({"listing": spread(2_000)}, fails=0)
    with pytest.raises(Unreachable):
        ring.read()


@pytest.mark.parametrize("silent", [{0}, {0, 1, 2, 3}, {0, 100, 200, 300}, {*range(128)}])
@pytest.mark.parametrize("rows", [2_000, 60_000])
def test_ranges_without_an_answer_hold_up_no_others(silent: set[int], rows: int) -> None:
    """However they lie, one sweep reads all that can be read before it gives up."""
    ring = Ring({"listing": spread(rows)}, silent={("listing", number) for number in silent})
    with pytest.raises(Unreachable):
        ring.read()
    lost = [each for each in ring.tables["listing"] if range_of(each, RANGES) in silent]
    assert len(ring.rows) == rows - len(lost)
    assert set(ring.rows.values()) == {1}


def test_most_is_read_where_every_long_piece_has_a_range_without_an_answer() -> None:
    """The last few may be left: the sweep gives up before it has read each range again."""
    silent = {*range(0, RANGES, 5)}
    ring = Ring({"listing": spread(2_000)}, silent={("listing", number) for number in silent})
    with pytest.raises(Unreachable):
        ring.read()
    there = [each for each in ring.tables["listing"] if range_of(each, RANGES) not in silent]
    assert len(ring.rows) > 0.9 * len(there)


def test_a_table_without_an_answer_is_read_again_when_the_others_are_read() -> None:
    ring = Ring(
        {"listing": spread(60_000), "index": []},
        silent={("index", number) for number in range(RANGES)},
    )
    with pytest.raises(Unreachable):
        ring.read()
    tables = [each.table for each in ring.pieces]
    last = len(tables) - tables[::-1].index("listing")
    assert tables[:last].count("index") == AT_FIRST
    assert len(ring.rows) == 60_000


def test_a_piece_ends_after_so_many_suspects_and_its_other_ranges_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All suspects of a round are sent to the driver at once."""
    monkeypatch.setattr(pieces, "MOST_SUSPECTS", 7_000)
    tokens = sorted(spread(30_000))
    rows = [(BIGINT.pack(each),) for each in tokens]
    found = SweptPiece(Piece("listing", range(RANGES), RANGES, 10**6))
    differs: Any = object()
    for page in PieceEnd(found, token, itemgetter(0)).pages(
        [rows[at : at + PAGE] for at in range(0, len(rows), PAGE)]
    ):
        found.rows += len(page)
        found.suspects += [differs] * len(page)
    assert 2 * PAGE <= found.rows <= 3 * PAGE
    assert found.rows == len(found.suspects)
    assert range_of(tokens[found.rows - 1], RANGES) < found.piece.numbers.stop
    assert range_of(tokens[found.rows], RANGES) == found.piece.numbers.stop, "the next is left"


def test_at_a_low_rate_the_first_pieces_are_small() -> None:
    """Else a sweep that is killed would read minutes of work again."""
    assert [fewest_at(rate) for rate in (1, 100, 5_000)] == [2, 250, FEWEST_ROWS]


def test_the_size_of_a_round_follows_its_time() -> None:
    size = RoundSize(RANGES, FEWEST_ROWS)
    for _ in range(10):
        size.fit(0.1)
    assert (size.pieces, size.rows) == (MOST_PIECES, module.MOST_ROWS)
    size.fit(4 * module.ROUND)
    assert (size.pieces, size.rows) == (MOST_PIECES, module.MOST_ROWS // 4)
    for _ in range(10):
        size.fit(100 * module.ROUND)
    assert (size.pieces, size.rows) == (module.FEWEST_PIECES, FEWEST_ROWS)


@pytest.mark.parametrize(
    ("rows", "rate", "ranges"),
    [
        (0, 5_000, 512),
        (25_600_000, 5_000, 512),
        (100_000_000, 5_000, 2_000),
        (3_000_000_000, 5_000, 60_000),
        (3_000_000_000, 1_000_000, 30_000),
        (3_000_000_000, 100, 65_536),
    ],
)
def test_a_range_is_some_ten_seconds_of_work_if_there_are_not_too_many(
    rows: int, rate: int, ranges: int
) -> None:
    assert ranges_for(rows, rate) == ranges
