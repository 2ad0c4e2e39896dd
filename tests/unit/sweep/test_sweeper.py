"""The driver of a sweep: what is done once, what is done again, and when lineage is complete."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import pytest
from prometheus_client import Counter

from checkpoints.sweeps import SweepRecord
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import bind, keeping
from reconcilers.declared.scan import phases_of
from reconcilers.rows.memory import Watching
from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.key import text_of
from reconcilers.words.model import Kind, Micros, Slot, Suspect
from reconcilers.words.tokens import tokens_of
from streaming.again.mark import SweepMark
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.progress import CountedProgress
from streaming.again.rounds import (
    AT_FIRST,
    GIVES_UP_AFTER,
    MOST_PIECES,
    SweepProgress,
    SweepRounds,
)
from streaming.again.sweep import Sweeper
from streaming.again.sweep_result import SweepResult
from streaming.commands.wiring.sweeper import told_of
from tests.builders.indexes import INDEX_SCHEMA
from tests.builders.sieves import sieve
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage
from tests.fakes.checkpoints.sweeps import MemorySweeps

FAMILY = bind(keeping(MESSAGE, ["messages", "deleted_uids"]), INDEX_SCHEMA)
TABLES = ("imapuidtable", "messageidtable", "messagedeleted")
DELAY, NOW = 5_000_000, 1_800_000_000_000_000
RANGES = 16
SWEEP = SweepRecord(NOW, "alice", "", FAMILY.names, RANGES)
ONE_A_RANGE = {Slot(UUID(int=number), at) for number in range(RANGES) for at in range(len(TABLES))}

BEGUN_SINCE = "lineage was reset, or a loss was found, since this sweep began: sweep again"


class KilledError(Exception):
    """As kill -9: nothing more happens."""


@dataclass
class Scene:
    """Sweeps over what outlives a process; ``scanned`` and ``published`` are what it did.

    A piece ends after ``at_once`` ranges, of ten rows each; ``read`` are those that were read.
    ``silent`` is a table without an answer, ``refusing`` one that refuses.
    """

    sweeps: MemorySweeps = field(default_factory=MemorySweeps)
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    journal: MemoryJournal = field(default_factory=lambda: MemoryJournal(lambda: NOW))
    scanned: list[Piece] = field(default_factory=list)
    read: list[tuple[str, int]] = field(default_factory=list)
    at_once: int = 1
    published: list[Suspect] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    settles: bool = True
    dies_at: int | None = None
    failing: int = 0
    unreadable: int | None = None
    undecodable: int | None = None
    alike: int = 0
    failing_ahead: set[int] = field(default_factory=set)
    before: list[tuple[int, Micros]] = field(default_factory=list)
    progress: SweepProgress | None = None
    silent: str = ""
    refusing: str = ""
    now: Micros = NOW + 1_000_000

    def __post_init__(self) -> None:
        self.sweeps.begin(SWEEP)
        self.lineage.watch_from(NOW - 10 * DELAY)

    def run(self) -> SweepResult:
        record = self.sweeps.all()[0]
        made = Sweeper(
            FAMILY,
            self.sweeps,
            SweepMark(self.lineage, DELAY),
            sieve(self, self.journal, lambda: NOW + 1_000_000, family=FAMILY),
            SweepRounds(self.scan, self.progress or self, self.waits.append, lambda: self.now),
        )
        return made.run(record)

    def is_killed(self) -> None:
        with pytest.raises(KilledError):
            self.run()

    @property
    def watching(self) -> Watching:
        found = self.lineage.watching()
        assert found is not None
        return found

    def scan(self, pieces: Sequence[Piece]) -> Sequence[SweptPiece]:
        self.scanned += pieces
        if self.dies_at is not None and len(self.scanned) >= self.dies_at:
            self.dies_at = None
            raise KilledError
        return [self._one(piece) for piece in pieces]

    def _one(self, piece: Piece) -> SweptPiece:
        if piece.ahead and self.failing_ahead & {*piece.numbers}:
            return SweptPiece(piece, failed=Unreachable("timed out"))
        if piece.table == self.refusing:
            return SweptPiece(piece, failed=Refused("no SELECT permission"))
        if piece.table == self.silent:
            return SweptPiece(piece, failed=Unreachable("no host answered"))
        if self.failing:
            self.failing -= 1
            return SweptPiece(piece, failed=Unreachable("no host answered"))
        found = SweptPiece(piece)
        numbers = piece.numbers[: self.at_once]
        found.end_before(numbers.stop)
        for number in numbers:
            self._one_range(number, found)
        return found

    def _one_range(self, number: int, found: SweptPiece) -> None:
        table = found.piece.table
        if not found.piece.ahead:
            self.read.append((table, number))
        slot = Slot(UUID(int=number), TABLES.index(table))
        suspect = Suspect(slot, frozenset(), Kind.MISSING_ROW, "messages")
        if self.undecodable == number and table == FAMILY.listing.table:
            suspect = replace(suspect, kind=None, unreadable="a cell that is no date")
        found.rows += 10
        found.suspects += [suspect, *self._alike(number)]
        if self.unreadable == number:
            found.unread = [(tokens_of(range(number, number + 1), RANGES), "tombstones")]

    def _alike(self, number: int) -> list[Suspect]:
        """Rows in which one column differs, the same ones at the same tokens of each table."""
        slots = (Slot(UUID(int=number), 1_000 + uid) for uid in range(self.alike))
        kind, columns = Kind.DIFFERING_CELLS, ("threadid",)
        return [Suspect(slot, frozenset(), kind, "messages", columns=columns) for slot in slots]

    # --- where suspects go, and what is shown

    def publish(self, suspects: Sequence[Suspect]) -> None:
        self.published += suspects

    def resume(self, suspects: int, since: Micros) -> None:
        self.before.append((suspects, since))

    def settled(self) -> bool:
        return self.settles

    def revisit(self) -> None:
        self.told.append(f"revisited, read up to {self.watching.swept_at}")

    def table(self, name: str, done: int, ranges: int) -> None:
        self.told.append(f"{name} {done}/{ranges}")

    def round(self, ranges: int, rows: int, suspects: int) -> None:
        pass

    def waiting(self, why: str) -> None:
        self.told.append(why)


def test_the_truth_comes_first_and_one_that_collects_is_not_scanned() -> None:
    assert phases_of(MESSAGE) == (TABLES[:1], (*TABLES[1:], "firstunseen", "mailboxrecents"))


def test_each_range_of_each_table_is_gone_through_once() -> None:
    scene = Scene()
    found = scene.run()
    assert len(scene.read) == len(set(scene.read)) == RANGES * len(TABLES)
    assert {table for table, _ in scene.read[:RANGES]} == {TABLES[0]}, "the truth comes first"
    assert (found.rows, found.suspects, found.memory) == (480, 48, None)
    (ended,) = scene.sweeps.all()
    assert ended.outcome == "480 rows, 48 suspects; lineage is complete"
    assert scene.watching.swept_at == ended.truth_swept_at == NOW + 1_000_000


def test_where_memory_is_whole_the_listing_is_read_ahead() -> None:
    scene = Scene()
    first = scene.run()
    assert not [each for each in scene.scanned if each.ahead], "nothing is remembered yet"
    scene.sweeps.begin(replace(SWEEP, began_at=NOW + 2_000_000))
    scene.scanned.clear()
    assert scene.run() == first
    ahead, rest = scene.scanned[:RANGES], scene.scanned[RANGES:]
    assert all(each.ahead and each.table == TABLES[1] for each in ahead)
    assert len({each.numbers.start for each in ahead}) == RANGES
    assert len(rest) == RANGES * len(TABLES)
    assert not [each for each in rest if each.ahead]


def test_rows_that_are_read_ahead_are_not_counted_as_compared() -> None:
    scene = swept_again()
    rows = Counter("rows", "Compared.", registry=None)
    scene.progress = CountedProgress(scene, rows)
    assert scene.run().rows == 480
    assert [each.ahead for each in scene.scanned].count(True) == RANGES
    (counted,) = rows.collect()
    assert counted.samples[0].value == 480


def swept_again() -> Scene:
    """Where lineage is complete: the next sweep reads ahead."""
    scene = Scene()
    scene.run()
    scene.sweeps.begin(replace(SWEEP, began_at=NOW + 2_000_000))
    scene.scanned.clear()
    scene.read.clear()
    return scene


def test_however_often_it_is_killed_it_reads_ahead_once() -> None:
    scene, kills = swept_again(), 0
    while scene.sweeps.all()[0].ended_at is None:
        scene.dies_at, kills = len(scene.scanned) + 10, kills + 1
        try:
            scene.run()
        except KilledError:
            continue
    assert kills > 3
    assert len([each for each in scene.scanned if each.ahead]) <= AT_FIRST + MOST_PIECES
    assert len({*scene.read}) == RANGES * len(TABLES)


def test_a_range_that_cannot_be_read_ahead_stops_nothing() -> None:
    scene = swept_again()
    scene.failing_ahead = {5}
    assert scene.run().memory is None
    assert len([each for each in scene.scanned if each.ahead]) <= 3 * RANGES
    assert len(scene.read) == RANGES * len(TABLES)


def test_where_nothing_can_be_read_ahead_the_truth_is_swept_without() -> None:
    scene = swept_again()
    scene.failing_ahead = set(range(RANGES))
    assert scene.run().rows == 480
    assert len([each for each in scene.scanned if each.ahead]) == AT_FIRST


def test_what_was_unresolved_is_judged_anew_once_memory_is_whole() -> None:
    whole, not_settled = Scene(), Scene(settles=False)
    whole.run()
    assert whole.told[:3] == [
        f"{TABLES[0]} 0/{RANGES}",
        f"revisited, read up to {NOW + 1_000_000}",
        f"{TABLES[1]} and 1 more 0/{2 * RANGES}",
    ]
    not_settled.run()
    assert not [each for each in not_settled.told if each.startswith("revisited")]


@pytest.mark.parametrize("dies_at", [1, 5, RANGES, RANGES + 3, 2 * RANGES + 9, 3 * RANGES])
def test_killed_anywhere_it_goes_on_and_only_what_was_under_way_is_done_again(dies_at: int) -> None:
    scene = Scene(dies_at=dies_at)
    scene.is_killed()
    done = set(scene.sweeps.ranges(SWEEP))
    assert len(done) >= dies_at - 2 * MOST_PIECES, "one round at most is read again"
    scene.read.clear()
    found = scene.run()
    again = {*scene.read}
    assert not again & done
    assert len(again | done) == RANGES * len(TABLES)
    assert (found.rows, found.suspects, found.memory) == (480, 48, None)
    assert listed(scene)
    assert scene.before == ([(len(done), NOW)] if done else [])  # one suspect a range


def test_memory_that_has_begun_anew_since_the_truth_was_read_is_not_whole() -> None:
    scene = Scene(dies_at=RANGES + 3)
    scene.is_killed()
    assert scene.sweeps.all()[0].truth_swept_at is not None
    scene.lineage.watch_from(NOW + 2_000_000)
    found = scene.run()
    assert found.memory == BEGUN_SINCE
    assert "lineage is not complete" in scene.sweeps.all()[0].outcome
    assert {each.slot for each in scene.published} == ONE_A_RANGE


@pytest.mark.parametrize("dies_at", [None, 1, 5, RANGES, RANGES + 3, 3 * RANGES])
def test_of_very_many_rows_alike_one_finding_tells_wherever_it_was_killed(
    dies_at: int | None,
) -> None:
    scene = Scene(dies_at=dies_at, alike=100)
    if dies_at is not None:
        scene.is_killed()
    found = scene.run()
    assert all(each.kind is Kind.MISSING_ROW for each in scene.published)
    assert {each.slot for each in scene.published} == ONE_A_RANGE
    (finding,) = scene.journal.open_findings(FAMILY)
    assert finding.kind is Kind.SYSTEMATIC
    assert (found.rows, found.suspects, found.memory) == (480, 48 + 4_800, None)
    (ended,) = scene.sweeps.all()
    assert ended.outcome == "480 rows, 4848 suspects, 1 systematic; lineage is complete"
    (line,) = found.systematic
    assert told_of(FAMILY, found)[1] == line
    assert text_of(finding.slot) in line


def test_of_fewer_rows_alike_each_is_handed_over_before_the_next_table_begins() -> None:
    scene = Scene(alike=10, dies_at=RANGES + 1)
    scene.is_killed()
    assert scene.sweeps.ranges(SWEEP).keys() == {(TABLES[0], number) for number in range(RANGES)}
    alike = [each.slot for each in scene.published if each.columns]
    assert len(alike) == len(set(alike)) == RANGES * 10


@pytest.mark.parametrize("how", ["of everything", "killed", "not all was read"])
def test_what_is_systematic_no_more_ends_with_a_sweep_of_everything(how: str) -> None:
    """One that was killed has counted the rest only."""
    scene = Scene(alike=100)
    scene.run()
    began_at = NOW + (2_000_000 if how == "killed" else 10)
    scene.sweeps.begin(replace(SWEEP, began_at=began_at))
    scene.alike, scene.unreadable = 0, 4 if how == "not all was read" else None
    if how == "killed":
        scene.dies_at = len(scene.scanned) + RANGES + 3
        scene.is_killed()
    scene.run()
    assert len(list(scene.journal.open_findings(FAMILY))) == (how != "of everything")


def test_a_range_that_failed_is_gone_through_again_after_a_pause() -> None:
    scene = Scene(failing=3)
    assert scene.run().rows == 480
    assert "no host answered" in scene.told
    assert any(scene.waits)


def test_where_nothing_can_be_read_it_ends_and_can_go_on() -> None:
    scene = Scene(failing=1_000_000)
    with pytest.raises(Unreachable, match="--resume"):
        scene.run()
    assert len(scene.scanned) == AT_FIRST * (GIVES_UP_AFTER + 1)
    scene.failing = 0
    assert scene.run().rows == 480


def test_what_cannot_be_read_leaves_memory_as_it_is() -> None:
    scene = Scene(unreadable=4)
    found = scene.run()
    assert len(found.unread) == len(TABLES)
    assert found.memory == "1 ranges of tokens cannot be read"
    assert not_whole(scene)


def test_what_is_not_settled_leaves_memory_as_it_is() -> None:
    scene = Scene(settles=False)
    assert scene.run().memory == "what was found is not settled: no stream runs"
    assert not_whole(scene)


def test_memory_that_began_after_the_sweep_is_not_whole() -> None:
    scene = Scene()
    scene.lineage.watch_from(NOW)
    assert scene.run().memory == BEGUN_SINCE
    assert not_whole(scene)


def test_a_loss_of_before_the_sweep_that_is_noticed_in_it_leaves_memory_as_it_is() -> None:
    """What it has held for known since the loss may be what the loss has changed."""
    scene = Scene(lineage=MemoryLineage(lambda: NOW + 1))
    scene.lineage.watch_from(NOW - 5 * DELAY)
    assert scene.run().memory == BEGUN_SINCE
    assert not_whole(scene)
    noticed_before = Scene(lineage=MemoryLineage(lambda: NOW - DELAY // 2))
    assert noticed_before.run().memory is None


def test_a_loss_that_is_told_while_the_mark_is_set_takes_it_back() -> None:
    """Events from before a moment within the sweep are lost: what it had read by then may lack."""
    scene = Scene()
    mark = scene.lineage.mark_swept

    def after_a_loss(at: int, since: int) -> None:
        scene.lineage.watch_from(NOW + 500_000)
        mark(at, since)

    scene.lineage.mark_swept = after_a_loss  # type: ignore[method-assign]
    assert scene.run().memory == BEGUN_SINCE
    assert not_whole(scene)


def test_without_a_beginning_of_memory_nothing_is_whole() -> None:
    scene = Scene()
    scene.lineage.stop_watching()
    assert scene.run().memory == "it is not known since when every change was received"


def not_whole(scene: Scene) -> bool:
    return scene.watching.swept_at is scene.watching.listed_at is None


def listed(scene: Scene) -> bool:
    """Whether the rows are known that only the listing has."""
    return scene.watching.listed_at == NOW + 1_000_000


def test_what_the_listing_had_is_known_only_when_it_was_read() -> None:
    scene = Scene(dies_at=RANGES + 3)
    scene.is_killed()
    assert not not_whole(scene)
    assert not listed(scene)
    scene.unreadable = 4
    scene.run()
    assert not listed(scene), "it may have a row where nothing could be read"


def done_of(scene: Scene, table: str) -> int:
    ranges = scene.sweeps.ranges(scene.sweeps.all()[0])
    return sum(each.ranges for (name, _), each in ranges.items() if name == table)


def test_what_the_listing_had_is_known_though_an_index_does_not_answer() -> None:
    scene = Scene(silent=TABLES[2])
    with pytest.raises(Unreachable, match="--resume"):
        scene.run()
    assert (done_of(scene, TABLES[1]), listed(scene)) == (RANGES, True)
    scene.silent, scene.now = "", scene.now + 5 * DELAY
    scene.read.clear()
    found = scene.run()
    assert {table for table, _ in scene.read} == {TABLES[2]}
    assert (found.rows, found.memory) == (480, None)
    assert listed(scene), "of the time when the listing was read"


@pytest.mark.parametrize("table", TABLES[1:])
def test_a_table_that_refuses_holds_up_no_other(table: str) -> None:
    scene = Scene(refusing=table)
    (other,) = {*TABLES[1:]} - {table}
    with pytest.raises(Refused, match=f"{table} refuses to be read: no SELECT permission"):
        scene.run()
    assert [done_of(scene, each) for each in (TABLES[0], other, table)] == [RANGES, RANGES, 0]
    assert listed(scene) == (table == TABLES[2])
    assert len([each for each in scene.scanned if each.table == table]) == AT_FIRST
    assert not any(scene.waits)
    scene.refusing = ""
    assert (scene.run().rows, listed(scene)) == (480, True)


def test_a_truth_that_refuses_ends_the_sweep() -> None:
    scene = Scene(refusing=TABLES[0])
    with pytest.raises(Refused, match=TABLES[0]):
        scene.run()
    assert {each.table for each in scene.scanned} == {TABLES[0]}
    assert not_whole(scene)


def test_the_first_mark_of_the_listing_stays() -> None:
    """A later one would take from the deletes in between what they tell."""
    scene = Scene()
    scene.lineage.mark_listed(NOW - DELAY, scene.watching.since)
    scene.run()
    marks = scene.watching
    assert (marks.listed_at, marks.swept_at) == (NOW - DELAY, NOW + 1_000_000)


def test_a_row_of_the_listing_that_could_not_be_looked_at_is_not_known() -> None:
    scene = Scene(undecodable=3)
    found = scene.run()
    assert (found.memory, found.unreadable.total(), found.is_all) == (None, 1, False)
    outcome = scene.sweeps.all()[0].outcome
    assert outcome.endswith("lineage is complete, but what only the listing has is not all known")
    assert not listed(scene)
    scene = Scene(undecodable=3, dies_at=2 * RANGES + 3)
    scene.is_killed()
    scene.run()
    assert not listed(scene), "its range is read again"
