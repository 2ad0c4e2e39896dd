"""`bind`: the columns come from the cluster, because installations of James differ by age."""

from __future__ import annotations

import pytest

from reconcilers.errors import Misconfigured, NotGuarded
from reconcilers.families import FAMILIES
from reconcilers.families.message import MESSAGE
from reconcilers.families.user_tally import USER_TALLY
from reconcilers.family import Projection, Schema, bind, keeping
from reconcilers.model import NEVER_WRITTEN
from reconcilers.projections.messages import every_truth_row
from reconcilers.tallies.current_quota import CURRENT_QUOTA, QUOTA_CURRENT_VALUE
from reconcilers.tally import Tally
from reconcilers.writes import SetCells
from tests.builders.rows import CELLS, NOW, PROJECTION, SCHEMA, SLOT

LISTED = keeping(MESSAGE, ())


def without(table: str, *columns: str) -> Schema:
    kept = {name: kind for name, kind in SCHEMA[table].items() if name not in columns}
    return {**SCHEMA, table: kept}


def test_every_column_that_both_tables_have_is_copied() -> None:
    assert PROJECTION.columns == tuple(sorted(["messageid", *CELLS]))


def test_the_key_is_not_copied() -> None:
    assert not set(PROJECTION.key) & set(PROJECTION.columns)


def test_sets_are_known_by_their_type() -> None:
    assert PROJECTION.sets == frozenset({"userflags"})


@pytest.mark.parametrize("table", ["imapuidtable", "messageidtable"])
def test_a_column_that_one_table_lacks_is_not_copied(table: str) -> None:
    bound = bind(LISTED, without(table, "flaguser"))
    assert "flaguser" not in bound.projections[0].columns


def test_newer_james_dropped_flaguser_on_both_sides() -> None:
    schema = {
        table: {name: kind for name, kind in columns.items() if name != "flaguser"}
        for table, columns in SCHEMA.items()
    }
    expected = tuple(column for column in PROJECTION.columns if column != "flaguser")
    assert bind(LISTED, schema).projections[0].columns == expected


def test_a_required_column_that_the_truth_lacks_is_not_required() -> None:
    bound = bind(LISTED, without("imapuidtable", "headercontent"))
    assert "headercontent" in MESSAGE.truth.required
    assert "headercontent" not in bound.truth.required


def test_a_required_column_that_only_the_projection_lacks_stays_required() -> None:
    assert (
        bind(LISTED, without("messageidtable", "headercontent")).truth.required
        == MESSAGE.truth.required
    )


@pytest.mark.parametrize("table", ["imapuidtable", "messageidtable"])
def test_a_missing_table_is_named(table: str) -> None:
    schema = {name: columns for name, columns in SCHEMA.items() if name != table}
    with pytest.raises(Misconfigured, match=f"table {table} does not exist"):
        bind(LISTED, schema)


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("imapuidtable", "messageid"),
        ("imapuidtable", "mailboxid"),
        ("imapuidtable", "uid"),
        ("messageidtable", "mailboxid"),
        ("messageidtable", "uid"),
        ("messageidtable", "messageid"),
    ],
)
def test_a_missing_key_is_named(table: str, column: str) -> None:
    with pytest.raises(Misconfigured, match=f"{table} has no column {column}"):
        bind(LISTED, without(table, column))


# --- tallies of two shapes -----------------------------------------------------------------------

OLDER = {"currentquota": dict.fromkeys(CURRENT_QUOTA.columns, "text")}
NEWER = {"quotacurrentvalue": dict.fromkeys(QUOTA_CURRENT_VALUE.columns, "text")}


@pytest.mark.parametrize(
    ("tables", "kept"),
    [
        ({}, []),
        (OLDER, [CURRENT_QUOTA]),
        (NEWER, [QUOTA_CURRENT_VALUE]),
        (OLDER | NEWER, [QUOTA_CURRENT_VALUE]),
    ],
    ids=["neither", "older", "newer", "both: an upgrade leaves the older behind"],
)
def test_a_quota_is_kept_in_one_table(tables: Schema, kept: list[Tally]) -> None:
    assert list(bind(USER_TALLY, SCHEMA | tables).tallies) == kept


def test_a_tally_whose_table_is_another_products_is_named() -> None:
    with pytest.raises(Misconfigured, match="currentquota has no column messagecount, storage"):
        bind(USER_TALLY, SCHEMA | {"currentquota": {"quotaroot": "text"}})


# --- what belongs to nobody ----------------------------------------------------------------------


def test_columns_of_other_products_are_left_alone() -> None:
    schema = {table: columns | {"extra": "text"} for table, columns in SCHEMA.items()}
    del schema["imapuidtable"]["extra"]
    assert "extra" not in bind(LISTED, schema).projections[0].columns


@pytest.mark.parametrize("table", sorted(NEVER_WRITTEN))
def test_promise_1_a_truth_table_cannot_be_declared_a_projection(table: str) -> None:
    with pytest.raises(NotGuarded, match=table):
        Projection("wrong", table, ("mailboxid", "uid"), every_truth_row, "messageid", "modseq")


def test_promise_1_every_truth_of_a_family_is_never_written() -> None:
    assert {family.truth.table for family in FAMILIES} <= NEVER_WRITTEN


@pytest.mark.parametrize("at", [0, -1])
def test_promise_2_a_write_without_its_guard_cannot_be_built(at: int) -> None:
    with pytest.raises(NotGuarded, match="guard"):
        SetCells(PROJECTION, SLOT, at, {})


def test_a_write_with_its_guard_can_be_built() -> None:
    assert SetCells(PROJECTION, SLOT, NOW, {}).at == NOW
