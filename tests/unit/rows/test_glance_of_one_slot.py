"""Each step of the glance by itself: what one slot lacks leaves the others as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.declared.family import Projection
from reconcilers.declared.raw import BIGINT, RawCell, RawKey, RawRow, RawShape
from reconcilers.rows.belonging import Belonging
from reconcilers.rows.glance import Asked, collected, indexed, listed, remembered, true
from reconcilers.words.model import Micros
from tests.builders.indexes import INDEXED
from tests.fakes.raw_tables import shape_of

TRUE, FALSE = b"\x01", b"\0"
SINCE: Micros = 1_000
GOOD: RawKey = (b"mailbox", b"8")
OTHER: RawKey = (b"mailbox", b"7")
SOURCE, ANOTHER = b"message", b"another"
AT = BIGINT.pack(SINCE)
WHOLE: RawRow = (SOURCE, TRUE, AT, None)


def known(
    *entries: RawRow, since: Micros | None = SINCE, others: frozenset[RawCell] = frozenset()
) -> dict[RawKey, RawCell]:
    return remembered(Asked({OTHER: [0], GOOD: [1]}, [SOURCE, None], others), entries, since)


# --- remembered ----------------------------------------------------------------------------------


NOT_WHOLE: dict[str, RawRow] = {
    "not in the truth": (SOURCE, FALSE, AT, None),
    "nobody knows whether it was": (SOURCE, None, AT, None),
    "expiring": (SOURCE, TRUE, AT, b"\0\0\0\x09"),
    "from an event": (SOURCE, TRUE, None, None),
    "before watching": (SOURCE, TRUE, BIGINT.pack(SINCE - 1), None),
    "before 1970": (SOURCE, TRUE, BIGINT.pack(-1), None),
    "at no time": (SOURCE, TRUE, b"\x80", None),
    "another than its wake names": (ANOTHER, TRUE, AT, None),
}


@pytest.mark.parametrize("entry", NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_what_is_not_remembered_whole_leaves_the_next_as_it_is(entry: RawRow) -> None:
    assert known((*OTHER, *entry), (*GOOD, *WHOLE)) == {GOOD: SOURCE}


def test_what_was_not_asked_for_or_is_remembered_twice_is_left() -> None:
    nobodys: RawRow = (b"mailbox", b"9", *WHOLE)
    twice = [(*OTHER, *WHOLE), (*OTHER, ANOTHER, TRUE, AT, None)]
    assert known(nobodys, *twice, (*GOOD, *WHOLE)) == {GOOD: SOURCE}


def test_a_source_that_another_wake_may_mean_is_left() -> None:
    beside: RawRow = (*OTHER, *WHOLE)
    of_another: RawRow = (*GOOD, ANOTHER, TRUE, AT, None)
    assert known(beside, of_another, others=frozenset({SOURCE})) == {GOOD: ANOTHER}


@pytest.mark.parametrize("at", [0, 1, SINCE])
def test_where_nobody_has_said_since_when_any_record_counts(at: Micros) -> None:
    entry: RawRow = (*GOOD, SOURCE, TRUE, BIGINT.pack(at), None)
    assert known(entry, since=None) == {GOOD: SOURCE}


# --- listed, true, indexed -----------------------------------------------------------------------

SHAPE: RawShape = replace(shape_of(INDEXED), copied=(4, 3), same=(), source=(3, 2), required=(4,))
"""The listing: the key, the source, a cell. The truth: the key, a flag, the source, the cell."""


def everything(flag: RawCell = TRUE) -> Belonging:
    """Belongs where its flag is ``flag``."""
    index = Projection("p", "p", ("a", "b"), lambda row: row.get("flag") == bool(flag == TRUE))
    columns = ("a", "b", "flag", "source", "cell")
    return Belonging(index, columns, lambda _, cell: cell == TRUE)


def test_the_source_is_where_the_listing_names_it() -> None:
    rows = [(*OTHER, ANOTHER, b"x"), (*GOOD, SOURCE, b"x")]
    sources = {(b"mailbox", b"6"): SOURCE, OTHER: SOURCE, GOOD: SOURCE}
    assert listed(SHAPE, sources, rows) == {GOOD: rows[1]}


@pytest.mark.parametrize(
    "truths",
    [
        [],
        [(*OTHER, TRUE, ANOTHER, b"x"), (b"mailbox", b"9", TRUE, ANOTHER, b"x")],
        [(b"mailbox", b"9", TRUE, ANOTHER, b"x")],
        [(*OTHER, TRUE, ANOTHER, b"y")],
        [(*OTHER, FALSE, ANOTHER, b"x")],
    ],
    ids=["gone", "two rows", "elsewhere", "another cell", "does not belong"],
)
def test_what_is_not_true_leaves_the_next_as_it_is(truths: list[RawRow]) -> None:
    rows: dict[RawKey, RawRow] = {OTHER: (*OTHER, ANOTHER, b"x"), GOOD: (*GOOD, SOURCE, b"x")}
    right: RawRow = (*GOOD, TRUE, SOURCE, b"x")
    assert true(SHAPE, everything(), rows, [*truths, right]) == {GOOD: right}


def test_of_a_right_truth_the_row_of_the_listing_is_known_cell_by_cell() -> None:
    shape = replace(SHAPE, same=((3, 2),), required=())
    rows: dict[RawKey, RawRow] = {OTHER: (*OTHER, ANOTHER, b"x"), GOOD: (*GOOD, SOURCE, None)}
    truths = [(*OTHER, TRUE, ANOTHER, b"x"), (*GOOD, TRUE, SOURCE, None)]
    right = true(shape, everything(), rows, truths)
    assert {key: shape.listed(truth) for key, truth in right.items()} == rows


INSIDE: RawRow = (*OTHER, TRUE, SOURCE, b"x")
OUTSIDE: RawRow = (*GOOD, FALSE, SOURCE, b"x")
TRUTHS: dict[RawKey, RawRow] = {OTHER: INSIDE, GOOD: OUTSIDE}


def test_an_index_has_what_belongs() -> None:
    assert indexed(everything(), TRUTHS, {OTHER}) == TRUTHS
    assert indexed(everything(), TRUTHS, set()) == {GOOD: OUTSIDE}


@pytest.mark.parametrize(
    ("there", "right"),
    [
        (frozenset("xy"), TRUTHS),
        (frozenset("x"), TRUTHS),
        (frozenset("y"), {GOOD: OUTSIDE}),
        (None, {GOOD: OUTSIDE}),
    ],
)
def test_what_collects_has_what_belongs_there(
    there: frozenset[str] | None, right: dict[RawKey, RawRow]
) -> None:
    groups: dict[RawKey, frozenset[str]] = {(b"another",): frozenset("x")}
    if there is not None:
        groups[OTHER[0],] = there

    def elements(truth: RawRow) -> frozenset[str]:
        return frozenset((truth[-1] or b"").decode())

    assert collected(1, TRUTHS, {OTHER}, elements, groups) == right
