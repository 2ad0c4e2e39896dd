"""The driver of a sweep of a family without lineage: one phase, no mark, and nothing is awaited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from checkpoints.sweeps import SweepRecord
from reconcilers.words.errors import Refused
from reconcilers.words.model import Kind, Slot, Suspect
from reconcilers.words.tokens import tokens_of
from streaming.again.mark import NoMark
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.rounds import SweepRounds
from streaming.again.sweep import Sweeper
from streaming.again.sweep_result import SweepResult
from streaming.commands.wiring.sweeper import told_of
from tests.builders.rights import FROM_EVENTS, SHARED
from tests.builders.sieves import sieve
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.sweeps import MemorySweeps

NOW, RANGES = 1_800_000_000_000_000, 16
TABLES = ("eventstore", "usermailboxacl")
SWEEP = SweepRecord(NOW, "alice", "", FROM_EVENTS.names, RANGES)
EVERY_RANGE = {(table, number) for table in TABLES for number in range(RANGES)}


class KilledError(Exception):
    """As kill -9: nothing more happens."""


@dataclass
class Scene:
    """Sweeps of rights, with a range in a piece, ten rows and a suspect in a range.

    No stream runs. ``unread`` is a range of the users' rows that cannot be read.
    """

    sweeps: MemorySweeps = field(default_factory=MemorySweeps)
    journal: MemoryJournal = field(
        default_factory=lambda: MemoryJournal(lambda: NOW, (FROM_EVENTS,))
    )
    read: list[tuple[str, int]] = field(default_factory=list)
    published: list[Suspect] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    dies_at: int | None = None
    unread: int | None = None
    refusing: str = ""

    def __post_init__(self) -> None:
        self.sweeps.begin(SWEEP)

    def run(self) -> SweepResult:
        rounds = SweepRounds(self.scan, self, lambda _: None, lambda: NOW + 1)
        of_rights = sieve(self, self.journal, lambda: NOW + 1, family=FROM_EVENTS)
        return Sweeper(FROM_EVENTS, self.sweeps, NoMark(), of_rights, rounds).run(
            self.sweeps.all()[0]
        )

    def scan(self, pieces: Sequence[Piece]) -> Sequence[SweptPiece]:
        if self.dies_at is not None and len(self.read) >= self.dies_at:
            self.dies_at = None
            raise KilledError
        return [self._one(piece) for piece in pieces]

    def _one(self, piece: Piece) -> SweptPiece:
        assert not piece.ahead
        if piece.table == self.refusing:
            return SweptPiece(piece, failed=Refused("no SELECT permission"))
        number, found = piece.numbers.start, SweptPiece(piece, rows=10)
        found.end_before(number + 1)
        self.read.append((piece.table, number))
        slot = Slot(f"{piece.table} {number}", SHARED)
        found.suspects.append(Suspect(slot, frozenset(), Kind.MISSING_ROW, "user_rights"))
        if piece.table == TABLES[1] and number == self.unread:
            found.unread.append((tokens_of(range(number, number + 1), RANGES), "tombstones"))
        return found

    # --- where suspects go, and what is shown

    def publish(self, suspects: Sequence[Suspect]) -> None:
        self.published += suspects

    def resume(self, suspects: int, since: int) -> None:
        pass

    def settled(self) -> bool:
        raise AssertionError("nothing rests on it")

    def revisit(self) -> None:
        pass

    def table(self, name: str, done: int, ranges: int) -> None:
        self.names.append(name)

    def round(self, ranges: int, rows: int, suspects: int) -> None:
        pass

    def waiting(self, why: str) -> None:
        pass


def test_each_range_of_both_tables_is_read_once_in_one_phase() -> None:
    scene = Scene()
    found = scene.run()
    assert len(scene.read) == len(EVERY_RANGE)
    assert {*scene.read} == EVERY_RANGE
    assert scene.names == ["eventstore and 1 more"]
    assert len({each.slot for each in scene.published}) == len(EVERY_RANGE)
    assert (found.memory, found.whole) == (None, "every row was compared")
    (ended,) = scene.sweeps.all()
    assert ended.outcome == "320 rows, 32 suspects; every row was compared"
    assert ended.truth_swept_at is not None
    told = ["rights: 320 rows were compared, 32 suspects found", "every row was compared"]
    assert told_of(FROM_EVENTS, found) == told


@pytest.mark.parametrize("dies_at", [0, 5, 16])
def test_killed_anywhere_it_goes_on_and_reads_no_range_again_that_is_done(dies_at: int) -> None:
    scene = Scene(dies_at=dies_at)
    with pytest.raises(KilledError):
        scene.run()
    done = set(scene.sweeps.ranges(SWEEP))
    scene.read.clear()
    assert scene.run().rows == 320
    assert {*scene.read} == EVERY_RANGE - done


def test_one_that_could_not_read_all_has_not_succeeded() -> None:
    scene = Scene(unread=4)
    found = scene.run()
    assert found.whole == "some rows could not be compared"
    (ended,) = scene.sweeps.all()
    assert (ended.truth_swept_at, ended.ended_at) == (None, NOW + 1)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_that_refuses_holds_up_no_other(table: str) -> None:
    scene = Scene(refusing=table)
    with pytest.raises(Refused, match=f"{table} refuses to be read"):
        scene.run()
    (other,) = {*TABLES} - {table}
    assert {*scene.read} == {(other, number) for number in range(RANGES)}
    scene.refusing = ""
    scene.read.clear()
    assert scene.run().rows == 320
    assert {each for each, _ in scene.read} == {table}
