"""Step 4: what is wrong at one slot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconcilers.rows.compare import compare, differing_columns
from reconcilers.rows.seen import Seen, is_incomplete
from reconcilers.words.millis import Millis
from reconcilers.words.model import Difference, Kind, Row, Value
from tests.builders.rows import FAMILY, OTHER_ID, PROJECTION, partial, row, seen, truth

CHANGED: Mapping[str, Value] = {
    "messageid": OTHER_ID,
    "modseq": 13,
    "flagseen": False,
    "flaguser": True,
    "userflags": frozenset({"work", "stale"}),
    "threadid": OTHER_ID,
    "internaldate": Millis(1_577_836_800_000),
    "save_date": Millis(1_577_836_800_000),
    "bodystartoctet": 101,
    "fullcontentoctets": 2001,
    "headercontent": "another",
}


def difference(one: Seen) -> Difference | None:
    return compare(FAMILY, PROJECTION, one)


def kind(one: Seen) -> Kind | None:
    found = difference(one)
    return found.kind if found is not None else None


OTHER = truth(messageid=OTHER_ID)
HEADLESS = truth(headercontent=None)
KINDS: dict[str, tuple[Seen, Kind | None]] = {
    "equal rows": (seen(row(), truth()), None),
    "nothing on both sides": (seen(None), None),
    "other write times": (seen(row(at=1), truth(at=2)), None),
    "a missing row": (seen(None, truth()), Kind.MISSING_ROW),
    "an extra row": (seen(row()), Kind.EXTRA_ROW),
    "a partial row without truth": (seen(partial(flagseen=True)), Kind.EXTRA_ROW),
    "a row at another UID": (seen(row(uid=8)), Kind.EXTRA_ROW),
    "two truth rows": (seen(row(), truth(), OTHER), Kind.DUPLICATE_UID),
    "two truth rows, none listed": (seen(None, truth(), OTHER), Kind.DUPLICATE_UID),
    "two, one of them incomplete": (
        seen(row(), truth(), truth(messageid=OTHER_ID, modseq=None)),
        Kind.INCOMPLETE_TRUTH_ROW,
    ),
    "two, both incomplete in the same": (
        seen(row(headercontent=None), HEADLESS, truth(headercontent=None, messageid=OTHER_ID)),
        Kind.INCOMPLETE_TRUTH_ROW,
    ),
    **{
        f"incomplete, and {name} differs": (
            seen(row({"headercontent": None, name: CHANGED[name]}), HEADLESS),
            Kind.INCOMPLETE_TRUTH_ROW,
        )
        for name in ("flagseen", "messageid", "userflags")
    },
    **{
        f"incomplete in both, {name} too, which sums need": (
            seen(
                row({"headercontent": None, name: None}), truth({"headercontent": None, name: None})
            ),
            Kind.INCOMPLETE_TRUTH_ROW,
        )
        for name in ("fullcontentoctets", "flagseen")
    },
}


@pytest.mark.parametrize(("one", "expected"), KINDS.values(), ids=KINDS)
def test_what_is_wrong_at_a_slot(one: Seen, expected: Kind | None) -> None:
    assert kind(one) is expected


def test_the_table_of_changes_names_every_copied_column() -> None:
    assert set(CHANGED) == set(PROJECTION.columns)


@pytest.mark.parametrize("column", sorted(CHANGED))
def test_one_differing_cell_of_any_column_is_found(column: str) -> None:
    wrong = row({column: CHANGED[column]})
    expected = Difference(Kind.DIFFERING_CELLS, (column,))
    assert difference(seen(wrong, truth())) == expected


@pytest.mark.parametrize("column", sorted(set(CHANGED) - {"userflags", "messageid"}))
def test_a_cell_missing_in_the_projection_is_found(column: str) -> None:
    lacking = row({column: None})
    there = truth({column: CHANGED[column]})
    assert difference(seen(lacking, there)) == Difference(Kind.DIFFERING_CELLS, (column,))


@pytest.mark.parametrize("column", ["threadid", "save_date", "flaguser"])
def test_null_is_a_value_where_no_message_needs_the_column(column: str) -> None:
    assert difference(seen(row({column: None}), truth({column: None}))) is None
    assert kind(seen(row({column: CHANGED[column]}), truth({column: None}))) is (
        Kind.DIFFERING_CELLS
    )


def test_an_equal_modseq_proves_nothing() -> None:
    assert difference(seen(row(modseq=12, flagseen=False), truth(modseq=12))) == Difference(
        Kind.DIFFERING_CELLS, ("flagseen",)
    )


def test_several_differing_cells_come_in_schema_order() -> None:
    wrong = row(userflags=frozenset(), flagseen=False, bodystartoctet=1)
    columns = ("bodystartoctet", "flagseen", "userflags")
    assert differing_columns(PROJECTION, truth(), wrong) == columns


@pytest.mark.parametrize("column", FAMILY.truth.required)
@pytest.mark.parametrize("actual", [None, row()], ids=["row missing", "row there"])
def test_a_truth_row_without_a_required_cell_is_incomplete(column: str, actual: Row | None) -> None:
    incomplete = truth({column: None})
    assert is_incomplete(FAMILY, incomplete)
    found = difference(seen(actual, incomplete))
    assert found == Difference(Kind.INCOMPLETE_TRUTH_ROW, (column,))


UNSUMMED = [column for column in FAMILY.truth.required if column not in FAMILY.truth.summed]


@pytest.mark.parametrize("column", UNSUMMED)
def test_a_row_that_lacks_the_same_cell_in_both_tables_is_a_fact_of_its_own(column: str) -> None:
    """It can be counted; nothing can be copied from it, and nothing is to be."""
    found = difference(seen(row({column: None}), truth({column: None})))
    assert found == Difference(Kind.INCOMPLETE_IN_BOTH, (column,))
    also_null = {column: None, "threadid": None, "save_date": None}
    found = difference(seen(row(also_null), truth(also_null)))
    assert found == Difference(Kind.INCOMPLETE_IN_BOTH, (column,))


@pytest.mark.parametrize("column", ["threadid", "save_date", "flaguser", "flagseen"])
def test_other_cells_may_be_null(column: str) -> None:
    assert not is_incomplete(FAMILY, truth({column: None}))


def test_a_truth_row_that_does_not_belong_in_the_projection_wants_no_row() -> None:
    only_unseen = replace(PROJECTION, belongs=lambda each: each.get("flagseen") is False)
    assert compare(FAMILY, only_unseen, seen(None, truth(flagseen=True))) is None
    extra = compare(FAMILY, only_unseen, seen(row(), truth(flagseen=True)))
    assert extra == Difference(Kind.EXTRA_ROW)
