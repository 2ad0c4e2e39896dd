"""What users' writes explain: times, spans of lightweight transactions, deletes, sets, counters."""

from dataclasses import replace
from typing import Any

import pytest

from deploy.nemesis.cells import FOREVER, ByUsers, Put, UserCells, explained
from deploy.nemesis.counts import UserSum, counter_name, user_sum
from deploy.nemesis.history import UserAnswer, UserOutcome, UserWrite
from deploy.nemesis.statement import UserStatement, UserWriteKind
from deploy.nemesis.tables import ABSENT, FinalRow, Held, held_cells
from deploy.nemesis.verdict import ViolationName, cell_name

NO, MAYBE, YES = ByUsers.NO, ByUsers.MAYBE, ByUsers.YES
LOST, OVERRIDDEN = ViolationName.LOST, ViolationName.OVERRIDDEN
NOT_CONVERGED, DOUBLED = ViolationName.NOT_CONVERGED, ViolationName.DOUBLED
KEY = ("a",)


def at(value: object, time: int, *, certain: bool = True) -> Put:
    return Put(value, time, time, certain)


@pytest.mark.parametrize(
    ("puts", "held", "answer"),
    [
        ([], ABSENT, YES),
        ([], Held(1, 5), NO),
        ([at(1, 5)], Held(1, 5), YES),
        ([at(1, 5)], Held(1), YES),
        ([at(1, 5)], Held(1, 6), NO),
        ([at(1, 5)], Held(1, 4), NO),
        ([at(1, 5)], Held(2, 5), NO),
        ([at(1, 5)], ABSENT, NO),
        ([at(1, 5), at(2, 6)], Held(1, 5), NO),
        ([at(1, 5), at(2, 6)], Held(1), NO),
        ([at(1, 5), at(2, 5)], Held(1, 5), YES),
        ([at(1, 5), at(1, 6)], Held(1, 5), YES),
        ([at(1, 5), at(2, 6, certain=False)], Held(1, 5), YES),
        ([at(1, 5), at(2, 6, certain=False)], Held(2, 6), MAYBE),
        ([at(1, 5), at(None, 6)], ABSENT, YES),
        ([at(1, 5), at(None, 6, certain=False)], ABSENT, MAYBE),
        ([at(1, 5), at(None, 4)], ABSENT, NO),
        ([at(1, 5), at(None, 6)], Held(1), NO),
        ([at(1, 5, certain=False)], ABSENT, YES),
    ],
)
def test_what_explains_a_cell(puts: list[Put], held: Held, answer: ByUsers) -> None:
    assert explained(puts, held) is answer


@pytest.mark.parametrize(
    ("puts", "held", "name"),
    [
        ([at(1, 5)], Held(1, 5), NOT_CONVERGED),
        ([at(1, 5)], Held(2, 6), OVERRIDDEN),
        ([at(1, 5)], Held(2, 5), OVERRIDDEN),
        ([at(1, 5)], Held(2, 4), LOST),
        ([at(1, 5)], ABSENT, LOST),
        ([at(1, 5), at(2, 6)], Held(1), LOST),
        ([at(1, 5), at(2, 6)], Held(3), OVERRIDDEN),
        ([], Held(3, 1), OVERRIDDEN),
    ],
)
def test_the_name_of_a_wrong_cell(puts: list[Put], held: Held, name: ViolationName) -> None:
    assert cell_name(puts, held)[0] is name


def write(kind: str = "update", outcome: str = "ok", **told: Any) -> UserWrite:
    statement = UserStatement("applicableflag", UserWriteKind(kind), KEY, **told)
    return UserWrite(1, statement, 100, 200, UserAnswer(UserOutcome(outcome)))


def puts(*history: UserWrite, cell: str = "c") -> list[Put]:
    return UserCells(history, skew_us=10).puts(("applicableflag", KEY, cell))


def test_a_write_has_the_time_of_its_client() -> None:
    [put] = puts(write(cells={"c": 1}, time=150))
    assert (put.earliest, put.latest, put.certain) == (150, 150, True)


def test_a_transaction_has_the_span_in_which_it_ran_and_the_skew() -> None:
    [put] = puts(write(cells={"c": 1}, conditional=True))
    assert (put.earliest, put.latest, put.begun, put.ended) == (90, 210, 100, 200)


def test_a_transaction_without_an_outcome_may_be_applied_at_any_later_time() -> None:
    [put] = puts(write(outcome="unknown", cells={"c": 1}, conditional=True))
    assert (put.earliest, put.latest, put.ended) == (90, FOREVER, FOREVER)
    assert not put.certain


def test_a_failed_write_explains_nothing() -> None:
    assert puts(write(outcome="failed", cells={"c": 1}, time=150)) == []


def test_a_replaced_set_deletes_what_was_older_and_not_its_own() -> None:
    history = [
        write(added={"c": ["x", "y"]}, time=140),
        write(replaced={"c": ["y"]}, time=150),
        write(added={"c": ["z"]}, time=150),
    ]
    gone, kept, beside = (puts(*history, cell=f"c.{each}") for each in "xyz")
    assert explained(gone, ABSENT) is YES
    assert explained(kept, ABSENT) is NO
    assert explained(kept, Held(True, 150)) is YES
    assert explained(beside, ABSENT) is NO


def test_a_delete_of_a_prefix_covers_its_rows_only() -> None:
    told = UserStatement("messageidtable", UserWriteKind.DELETE, ("a",), time=5)
    cells = UserCells([replace(write(), statement=told)], skew_us=10)
    assert len(cells.puts(("messageidtable", ("a", 1), "modseq"))) == 1
    assert cells.puts(("messageidtable", ("b", 1), "modseq")) == []


def counted(outcome: str, delta: int, attempts: int = 1) -> UserWrite:
    statement = UserStatement("mailboxcounters", UserWriteKind.COUNT, KEY, {"count": delta})
    answer = UserAnswer(UserOutcome(outcome), attempts=attempts)
    return UserWrite(1, statement, 1, 2, answer)


def test_the_sum_of_deltas_is_an_interval() -> None:
    writes = [
        counted("ok", 2),
        counted("unknown", -3),
        counted("failed", 50),
        counted("ok", 5, attempts=2),
    ]
    assert user_sum(writes, "count") == UserSum(4, 12, 7, frozenset({2, -3, 5}))
    assert user_sum(writes, "unseen") == UserSum(0, 0, 0, frozenset())


@pytest.mark.parametrize(
    ("value", "wanted", "name", "answer"),
    [
        (700, 900, NOT_CONVERGED, YES),
        (800, 900, NOT_CONVERGED, YES),
        (650, 900, NOT_CONVERGED, MAYBE),
        (1100, 900, DOUBLED, NO),
        (1300, 900, DOUBLED, NO),
        (1000, 900, OVERRIDDEN, NO),
        (200, 300, OVERRIDDEN, NO),
        (150, 300, DOUBLED, NO),
    ],
)
def test_the_name_of_a_wrong_counter(
    value: int, wanted: int, name: ViolationName, answer: ByUsers
) -> None:
    users = UserSum(600, 750, 700, frozenset({150, 550}))
    assert counter_name(users, value, wanted) == (name, answer)


def test_the_elements_of_a_set_have_times_of_their_own() -> None:
    row = FinalRow({"mailboxid": "a", "userflags": {"y", "x"}}, {"userflags": [1, 2]})
    cells = {"userflags.x": Held(True, 1), "userflags.y": Held(True, 2)}
    assert held_cells("applicableflag", row) == cells
    untimed = {"userflags.x": Held(True), "userflags.y": Held(True)}
    assert held_cells("applicableflag", replace(row, times={"userflags": None})) == untimed


def test_a_row_without_other_cells_is_a_cell() -> None:
    assert held_cells("mailbox", FinalRow({"id": "a", "name": None})) == {"": Held(True)}
