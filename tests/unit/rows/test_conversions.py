"""Cells that truth and projection store in two forms: compared in one, written in the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcilers.declared.conversion import LETTERS, as_copied, as_in_truth
from reconcilers.declared.family import bind
from reconcilers.declared.raw import raw_shape
from reconcilers.declared.writes import SetCells
from reconcilers.rows.compare import compare
from reconcilers.rows.plan import plan
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Difference, Kind, Row, Value
from tests.builders.rights import DECLARED, RIGHTS, SCHEMA, USER_RIGHTS, granted, place, shown
from tests.builders.rows import LONG_AGO, MOMENT

IN_A_SET = SCHEMA | {"aclv2": SCHEMA["aclv2"] | {"rights": "set<text>"}}
CONVERTED = bind(
    replace(DECLARED, projections=(replace(USER_RIGHTS, conversions={"rights": LETTERS}),)),
    IN_A_SET,
)
LISTING = CONVERTED.listing
letters = st.characters(codec="utf-8")
sets = st.frozensets(letters, max_size=12)
texts = st.text(letters, max_size=12)


def _with(row: Row, rights: Value) -> Row:
    return replace(row, cells={**row.cells, "rights": rights})


def seen(actual: Row | None, rights: Value) -> Seen:
    return Seen(place(), actual, (_with(granted(), rights),), listed=actual is not None)


@given(sets)
def test_a_set_of_letters_comes_back_from_its_text(rights: frozenset[str]) -> None:
    assert LETTERS.back(LETTERS.forth(rights)) == rights


@given(texts)
def test_a_text_comes_back_in_order_each_letter_once(text: str) -> None:
    canonical = LETTERS.forth(LETTERS.back(text))
    assert canonical == "".join(sorted(set(text)))
    assert LETTERS.back(canonical) == LETTERS.back(text)


@given(sets, texts)
def test_a_row_and_its_truth_are_equal_exactly_if_their_letters_are(
    rights: frozenset[str], text: str
) -> None:
    found = compare(CONVERTED, LISTING, seen(shown(rights=text), rights))
    equal = rights == set(text)
    assert found == (None if equal else Difference(Kind.DIFFERING_CELLS, ("rights",)))


@pytest.mark.parametrize("text", [None, ""])
def test_no_letters_are_null_or_an_empty_text(text: str | None) -> None:
    assert compare(CONVERTED, LISTING, seen(_with(shown(), text), frozenset())) is None
    assert compare(CONVERTED, LISTING, seen(_with(shown(), text), frozenset("l"))) is not None


@given(sets)
def test_what_is_written_is_what_is_compared_as_equal(rights: frozenset[str]) -> None:
    for actual, kind in (None, Kind.MISSING_ROW), (shown(rights="?"), Kind.DIFFERING_CELLS):
        difference = Difference(kind, ("rights",))
        (write,) = plan(LISTING, seen(actual, rights), difference, MOMENT, 0)  # type: ignore[misc]
        assert isinstance(write, SetCells)
        assert write.cells == {"rights": "".join(sorted(rights))}
        written = shown(rights=str(write.cells["rights"]))
        assert compare(CONVERTED, LISTING, seen(written, rights)) is None


def test_only_declared_columns_are_converted_and_write_times_stay() -> None:
    row = Row({"rights": frozenset("rl"), "other": frozenset("rl")}, {"rights": LONG_AGO})
    copied = as_copied({"rights": LETTERS}, row)
    assert copied == Row({"rights": "lr", "other": frozenset("rl")}, {"rights": LONG_AGO})
    assert as_in_truth({"rights": LETTERS}, copied) == row
    assert as_copied({}, row) is row


def test_a_truth_knows_its_own_set_columns() -> None:
    assert CONVERTED.truth.sets == {"rights"}
    assert LISTING.sets == frozenset()
    assert RIGHTS.truth.sets == frozenset()


def test_a_glance_passes_no_row_of_a_family_with_conversions() -> None:
    assert raw_shape(RIGHTS) is not None
    assert raw_shape(CONVERTED) is None
