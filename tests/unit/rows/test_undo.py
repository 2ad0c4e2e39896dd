"""The steps of an undo: the hold first, the journal before the write, seen after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from reconcilers.declared.family import Projection
from reconcilers.declared.writes import AddRow, AddToSet, DeleteRow, RemoveFromSet, SetCells, Write
from reconcilers.limits.hold import Hold
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.undo import AS_BEFORE, NO_REPAIR, UNDO, last_repair, tries_of, undo
from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.model import KeyValue, Kind, Row, Slot
from streaming.steps.undo import RowUndo, Undoing
from tests.builders.findings import OURS as AT
from tests.builders.findings import finding
from tests.builders.rows import FAMILY, NOW, PROJECTION, SLOT, row
from tests.fakes.checkpoints.memory import MemoryJournal, MemoryLineage

HOLD = Hold(FAMILY.name, PROJECTION.name, SLOT, NOW, "ana", "it was right")
INDEX = replace(PROJECTION, name="an_index", identity=None, columns=(), sets=frozenset())
GATHERED = replace(INDEX, key=("mailboxid",), collects="flags")


CORRECTED = finding(State.VERIFIED, batch="", found_at=NOW, before=row(flagseen=False))
LEFT = row(flagseen=True, written={"flagseen": AT})


@dataclass
class Server:
    """One row, what happened to it in order, and what comes in between."""

    journal: MemoryJournal
    lineage: MemoryLineage = field(default_factory=MemoryLineage)
    now: Row | None = LEFT
    after: Row | None = CORRECTED.before
    events: list[str] = field(default_factory=list)
    fails: Exception | None = None
    paused: str | None = None

    def projection_with_times(
        self, projection: Projection, slots: Sequence[Slot]
    ) -> dict[Slot, Row]:
        on_hold = bool(self.journal.holds.standing(FAMILY, PROJECTION.name, [SLOT]))
        self.events.append("read on hold" if on_hold else "read")
        return {} if self.now is None else {SLOT: self.now}

    def truth_serially(self, sources: Iterable[KeyValue]) -> dict[KeyValue, tuple[Row, ...]]:
        raise AssertionError("the cells of this row have write times")

    def apply(self, writes: Sequence[Write]) -> None:
        self.events.append(f"write after {logged(self.journal)[-1][0]}")
        if self.fails is not None:
            raise self.fails
        self.now = self.after

    def why(self, projection: Projection, kind: Kind) -> str | None:
        return self.paused


def logged(journal: MemoryJournal) -> list[tuple[str, str]]:
    return [(str(line["state"]), str(line["sentence"])) for line in journal.log_at(NOW)]


def history(server: Server) -> list[Finding]:
    return list(server.journal.history(FAMILY, PROJECTION.name, SLOT))


@pytest.fixture
def server() -> Server:
    return Server(MemoryJournal(lambda: NOW))


def undoing(server: Server, why: Callable[[Projection, Kind], str | None] | None = None) -> RowUndo:
    stores = (server.journal, server.lineage)
    return RowUndo(FAMILY, server, *stores, why or server.why, lambda: NOW)


def is_on_hold(server: Server) -> bool:
    return SLOT in server.journal.holds.standing(FAMILY, PROJECTION.name, [SLOT])


def test_the_hold_comes_first_and_the_journal_before_the_write(server: Server) -> None:
    server.journal.put(CORRECTED)
    became = undoing(server).carry_out(CORRECTED, HOLD)
    assert became.what is Undoing.DONE
    assert server.events == ["read", "read on hold", "write after undoing", "read on hold"]
    states = logged(server.journal)
    assert [state for state, _ in states] == ["verified", "undoing", "undone"]
    assert all("undo by ana: it was right" in sentence for _, sentence in states[1:])
    assert is_on_hold(server)
    assert server.journal.recall(FAMILY, PROJECTION.name, [SLOT]) == {}


OLDEST = row(flagseen=False, flaguser=True)
BETWEEN = row(flagseen=True, flaguser=True, written={"flagseen": AT})


def tried_twice(server: Server) -> Finding:
    """Its second try corrects only the column that the first has not; returns that."""
    both = SetCells(PROJECTION, SLOT, AT, {"flagseen": True, "flaguser": None})
    again = SetCells(PROJECTION, SLOT, NOW - 9, {"flaguser": None})
    last = replace(CORRECTED, attempts=2, before=BETWEEN, writes=(again,))
    first = replace(CORRECTED, state=State.INTENDED, before=OLDEST, writes=(both,))
    for each in (first, replace(last, state=State.INTENDED), last):
        server.journal.put(each)
    server.now = row(flagseen=True, flaguser=None, written={"flagseen": AT})
    return last


def test_a_row_that_was_tried_twice_is_as_before_the_first_try(server: Server) -> None:
    last = tried_twice(server)
    server.after = OLDEST
    assert undoing(server).carry_out(last, HOLD).what is Undoing.DONE
    undone, half = history(server)[:2]
    assert half.writes == (
        SetCells(PROJECTION, SLOT, AT + 1, {"flagseen": False, "flaguser": True}),
        SetCells(PROJECTION, SLOT, NOW - 8, {"flaguser": True}),
    )
    assert (undone.state, undone.before) == (State.UNDONE, OLDEST)


def test_a_row_that_is_as_before_the_second_try_is_not_called_undone(server: Server) -> None:
    last = tried_twice(server)
    server.after = BETWEEN
    assert undoing(server).carry_out(last, HOLD).what is Undoing.OVERTAKEN


def test_the_intent_in_the_log_has_what_is_replaced_and_what_is_written(server: Server) -> None:
    undoing(server).carry_out(CORRECTED, HOLD)
    intended = history(server)[-1]
    assert intended.before == LEFT
    assert intended.writes == (SetCells(PROJECTION, SLOT, AT + 1, {"flagseen": False}),)


def test_only_planning_it_reads_and_does_nothing(server: Server) -> None:
    planned = undoing(server).plan(CORRECTED)
    assert planned == (SetCells(PROJECTION, SLOT, AT + 1, {"flagseen": False}),)
    assert server.events == ["read"]
    assert not is_on_hold(server)


def test_what_has_changed_is_refused_before_anything_is_done(server: Server) -> None:
    server.now = row(flagseen=True, written={"flagseen": AT, "modseq": NOW})
    became = undoing(server).carry_out(CORRECTED, HOLD)
    assert became.what is Undoing.REFUSED
    assert became.sentence.startswith("modseq changed since the repair, at 2027-01-15T08:00:00")
    assert (server.events, logged(server.journal), is_on_hold(server)) == (["read"], [], False)


def test_what_changes_while_the_hold_is_placed_is_refused_and_the_hold_ends(server: Server) -> None:
    place = server.journal.holds.place

    def changes_then(hold: Hold) -> None:
        place(hold)
        server.now = None

    server.journal.holds.place = changes_then  # type: ignore[method-assign]
    became = undoing(server).carry_out(CORRECTED, HOLD)
    assert (became.what, became.sentence) == (
        Undoing.REFUSED,
        "the row is not there any more: somebody has deleted it since",
    )
    assert not is_on_hold(server)
    assert not [event for event in server.events if event.startswith("write")]


def test_a_pause_that_comes_after_the_journal_stops_the_write(server: Server) -> None:
    asked: list[str | None] = [None, "repairs are paused"]
    became = undoing(server, lambda *_: asked.pop(0)).carry_out(CORRECTED, HOLD)
    assert (became.what, became.sentence) == (Undoing.REFUSED, "repairs are paused")
    assert server.events == ["read", "read on hold"]
    assert [state for state, _ in logged(server.journal)] == ["undoing", "held"]
    assert not is_on_hold(server)


@pytest.mark.parametrize("others", [False, True], ids=["free", "on hold by somebody else"])
def test_a_table_that_refuses_is_told_and_our_hold_ends(server: Server, *, others: bool) -> None:
    if others:
        server.journal.holds.place(replace(HOLD, who="bob", asked_at=NOW - 1))
    server.fails = Refused("no right")
    became = undoing(server).carry_out(CORRECTED, HOLD)
    assert (became.what, became.sentence) == (Undoing.REFUSED, "its table refuses: no right")
    assert is_on_hold(server) is others


def test_without_an_answer_the_key_stays_on_hold_and_it_can_be_undone_again(server: Server) -> None:
    server.fails = Unreachable("no answer")
    with pytest.raises(Unreachable):
        undoing(server).carry_out(CORRECTED, HOLD)
    assert is_on_hold(server)
    assert [state for state, _ in logged(server.journal)] == ["undoing"]
    server.journal.put(CORRECTED)
    assert isinstance(last_repair(history(server)), Finding)


def test_something_newer_that_stands_after_the_write_is_told(server: Server) -> None:
    server.after = row(flagseen=True, written={"flagseen": NOW})
    became = undoing(server).carry_out(CORRECTED, HOLD)
    assert became.what is Undoing.OVERTAKEN
    assert "something newer is there" in became.sentence
    assert [state for state, _ in logged(server.journal)] == ["undoing", "superseded"]
    assert is_on_hold(server)


def test_a_projection_that_is_switched_off_is_refused(server: Server) -> None:
    planned = undoing(server).plan(replace(CORRECTED, projection="recent_uids"))
    assert planned == "recent_uids is not among repair.projections"


@pytest.mark.parametrize(
    ("kind", "named"),
    [(Kind.MISSING_ROW, Kind.EXTRA_ROW), (Kind.DIFFERING_CELLS, Kind.DIFFERING_CELLS)],
)
def test_taking_back_a_row_that_was_added_is_a_removal(
    server: Server, kind: Kind, named: Kind
) -> None:
    asked: list[Kind] = []
    undoing(server, lambda _, kind: asked.append(kind)).plan(replace(CORRECTED, kind=kind))
    assert asked == [named]


def test_of_two_who_undo_a_repair_at_once_the_later_leaves_the_hold_of_the_first(
    server: Server,
) -> None:
    """Neither finds the key on hold at first; the first has undone it before the other looks."""
    place = server.journal.holds.place

    def after_the_other(hold: Hold) -> None:
        server.journal.holds.place = place  # type: ignore[method-assign]
        bob = replace(HOLD, who="bob", asked_at=NOW - 1)
        assert undoing(server).carry_out(CORRECTED, bob).what is Undoing.DONE
        place(hold)

    server.journal.holds.place = after_the_other  # type: ignore[method-assign]
    became = undoing(server).carry_out(CORRECTED, HOLD)
    assert (became.what, became.sentence) == (Undoing.REFUSED, AS_BEFORE)
    (left,) = server.journal.holds.all(FAMILY)
    assert left.who == "bob"


def test_a_row_comes_back_with_all_that_it_had_but_its_key_which_no_update_sets() -> None:
    write = DeleteRow(PROJECTION, SLOT, AT)
    removed = replace(CORRECTED, kind=Kind.EXTRA_ROW, writes=(write,), before=row(threadid=None))
    writes = undo([removed], None)
    assert isinstance(writes, tuple)
    cells, flags = writes
    assert isinstance(cells, SetCells)
    null_or_key = {"mailboxid", "uid", "threadid", "save_date", "userflags"}
    assert cells.cells.keys() == row().cells.keys() - null_or_key
    assert flags == AddToSet(PROJECTION, SLOT, AT + 1, "userflags", frozenset({"work"}))


# --- indexes


def index_repair(write: Write, before: Row | None) -> Finding:
    return replace(CORRECTED, kind=Kind.MISSING_ROW, writes=(write,), before=before)


def test_an_index_row_is_taken_away_again_or_put_back() -> None:
    added = index_repair(AddRow(INDEX, SLOT, AT), None)
    removed = index_repair(DeleteRow(INDEX, SLOT, AT), Row({}))
    assert undo([added], Row({})) == (DeleteRow(INDEX, SLOT, AT + 1),)
    assert undo([removed], None) == (AddRow(INDEX, SLOT, AT + 1),)
    assert undo([added], None) == undo([removed], Row({})) == AS_BEFORE


def test_of_gathered_elements_those_are_removed_that_were_not_there() -> None:
    write = AddToSet(GATHERED, SLOT, AT, "flags", frozenset({"a", "b"}))
    repair = index_repair(write, Row({"flags": frozenset({"b", "c"})}))
    now = Row({"flags": frozenset({"a", "b", "c", "newer"})})
    assert undo([repair], now) == (
        RemoveFromSet(GATHERED, SLOT, AT + 1, "flags", frozenset({"a"})),
    )
    assert undo([repair], Row({"flags": frozenset({"b"})})) == AS_BEFORE


# --- which repair is undone


def line(state: State, **changes: object) -> Finding:
    return replace(CORRECTED, state=state, **changes)  # type: ignore[arg-type]


def test_the_last_repair_is_that_of_the_newest_line_with_writes() -> None:
    older = line(State.VERIFIED, found_at=1)
    reported = line(State.REPORTED, writes=(), found_at=3)
    newest = line(State.STUCK, found_at=2)
    assert last_repair([reported, newest, older]) == newest
    assert last_repair([reported]) == last_repair([]) == NO_REPAIR


def test_an_intent_that_was_not_sent_is_none_and_one_that_was_retried_is() -> None:
    held = line(State.HELD, writes=())
    older = line(State.VERIFIED, found_at=1)
    assert last_repair([held, line(State.INTENDED), older]) == older
    stuck = line(State.STUCK)
    assert last_repair([held, stuck, older]) == stuck


def test_what_was_undone_is_not_undone_twice_but_what_a_crash_left_is() -> None:
    undone, half = (line(state, batch=UNDO) for state in (State.UNDONE, State.UNDOING))
    repair = line(State.VERIFIED)
    assert last_repair([undone, half, repair]) == "it was undone already: it differed"
    assert last_repair([half, repair]) == repair
    assert last_repair([line(State.INTENDED, found_at=9), undone, repair]).found_at == 9  # type: ignore[union-attr]


def test_the_tries_of_a_finding_are_those_that_were_sent_while_it_was_open() -> None:
    one, two, three = (
        line(State.INTENDED, writes=(SetCells(PROJECTION, SLOT, AT + each, {}),), attempts=each)
        for each in (1, 2, 3)
    )
    stuck, older = replace(two, state=State.STUCK), line(State.INTENDED, found_at=1)
    assert tries_of(stuck, [stuck, two, one, older]) == (one, stuck)
    held = replace(two, state=State.HELD)
    assert tries_of(held, [held, three, held, two, one]) == (one, held)
    undoing = line(State.UNDOING, batch=UNDO)
    assert tries_of(two, [undoing, two, one]) == (one, two)
    assert tries_of(two, []) == (two,)


def test_a_try_before_a_users_write_is_not_undone_with_the_later_ones() -> None:
    """A report or a retry between two tries keeps the finding, whoever has written meanwhile."""
    first = line(State.INTENDED)
    retry = line(State.HELD, writes=(), before=None)
    log = [retry, line(State.STUCK), first]
    user = row(flagseen=False, written={"flagseen": NOW - 9})
    again = SetCells(PROJECTION, SLOT, NOW - 8, {"flagseen": True})
    for before, linked in ((LEFT, True), (CORRECTED.before, True), (user, False), (None, False)):
        last = line(State.VERIFIED, before=before, writes=(again,))
        tries = tries_of(last, [replace(last, state=State.INTENDED), *log])
        assert tries == ((first, last) if linked else (last,))


def test_nothing_older_than_a_users_write_is_undone_with_it() -> None:
    """The oldest try fits the last, and one in between does not: it is stopped there."""
    oldest = line(State.INTENDED, writes=(SetCells(PROJECTION, SLOT, AT - 1, {"flagseen": True}),))
    user = row(flagseen=False, written={"flagseen": NOW - 9})
    between = line(State.INTENDED, writes=(DeleteRow(PROJECTION, SLOT, NOW - 9),), before=user)
    last = line(State.VERIFIED)
    assert tries_of(last, [between, oldest]) == (last,)
