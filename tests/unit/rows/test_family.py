"""`bind`: the columns come from the cluster, because installations of James differ by age."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcilers.declared.families import FAMILIES
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.family import Projection, Schema, bind, keeping
from reconcilers.declared.projections.messages import every_truth_row
from reconcilers.declared.tallies.current_quota import CURRENT_QUOTA, QUOTA_CURRENT_VALUE
from reconcilers.declared.tally import Tally
from reconcilers.declared.writes import AddToCounter, SetCells
from reconcilers.words.errors import Misconfigured, NotGuarded
from reconcilers.words.model import NEVER_WRITTEN, Value
from tests.builders.rows import CELLS, MESSAGE_ID, NOW, PROJECTION, SCHEMA, SLOT, row, truth

LISTED = keeping(MESSAGE, ())


def without(table: str, *columns: str) -> Schema:
    kept = {name: kind for name, kind in SCHEMA[table].items() if name not in columns}
    return {**SCHEMA, table: kept}


def test_every_column_that_both_tables_have_is_copied_but_the_key() -> None:
    assert PROJECTION.columns == tuple(sorted(["messageid", *CELLS]))
    assert not set(PROJECTION.key) & set(PROJECTION.columns)
    assert PROJECTION.sets == frozenset({"userflags"})  # known by their type


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


def test_a_required_column_is_required_unless_the_truth_lacks_it() -> None:
    assert "headercontent" in MESSAGE.truth.required
    lacking = bind(LISTED, without("imapuidtable", "headercontent"))
    assert "headercontent" not in lacking.truth.required
    unlisted = bind(LISTED, without("messageidtable", "headercontent"))
    assert unlisted.truth.required == MESSAGE.truth.required


@pytest.mark.parametrize("table", ["imapuidtable", "messageidtable"])
def test_a_missing_table_is_named(table: str) -> None:
    schema = {name: columns for name, columns in SCHEMA.items() if name != table}
    with pytest.raises(Misconfigured, match=f"table {table} does not exist"):
        bind(LISTED, schema)


@pytest.mark.parametrize("table", ["imapuidtable", "messageidtable"])
@pytest.mark.parametrize("column", ["messageid", "mailboxid", "uid"])
def test_a_missing_key_is_named(table: str, column: str) -> None:
    with pytest.raises(Misconfigured, match=f"{table} has no column {column}"):
        bind(LISTED, without(table, column))


# --- what leads from a row to another -----------------------------------------------------------


def test_what_is_declared_of_a_projection_is_nothing_but_its_key_unless_told() -> None:
    told = ("lists", "lists", ("mailboxid", "uid"), every_truth_row)
    assert Projection(*told) == Projection(
        *told,
        identity=None,
        write_time_of_sets=None,
        collects=None,
        optional=None,
        columns=(),
        sets=frozenset(),
    )
    assert MESSAGE.suffix == ""


@pytest.mark.parametrize("lacking", [{"uid": None}, {"mailboxid": None}, {"uid": frozenset()}])
def test_a_truth_row_without_a_whole_key_leads_nowhere(lacking: dict[str, Value]) -> None:
    assert MESSAGE.truth.slot_of(truth()) == SLOT
    with pytest.raises(ValueError, match="without mailboxid, uid"):
        MESSAGE.truth.slot_of(truth(lacking))


def test_a_row_names_its_source_where_it_can() -> None:
    assert PROJECTION.source_of(row()) == MESSAGE_ID
    assert PROJECTION.source_of(row(messageid=None)) is None
    assert PROJECTION.source_of(row(messageid=frozenset({"x"}))) is None
    assert PROJECTION.source_of(None) is None
    assert replace(PROJECTION, identity=None).source_of(row()) is None


# --- tallies of two shapes -----------------------------------------------------------------------

OLDER = {"currentquota": dict.fromkeys(CURRENT_QUOTA.columns, "text")}
NEWER = {"quotacurrentvalue": dict.fromkeys(QUOTA_CURRENT_VALUE.columns, "text")}


@pytest.mark.parametrize(
    ("tables", "kept"),
    [
        ({}, []),
        (OLDER, [CURRENT_QUOTA]),
        (NEWER, [QUOTA_CURRENT_VALUE]),
        (OLDER | NEWER, [CURRENT_QUOTA, QUOTA_CURRENT_VALUE]),
    ],
    ids=["neither", "older", "newer", "both: which James writes is seen later"],
)
def test_a_quota_is_kept_in_a_table_that_is_there(tables: Schema, kept: list[Tally]) -> None:
    assert list(bind(USER_TALLY, SCHEMA | tables).tallies) == kept


def test_a_tally_whose_table_is_another_products_is_named() -> None:
    with pytest.raises(Misconfigured, match="currentquota has no column messagecount, storage"):
        bind(USER_TALLY, SCHEMA | {"currentquota": {"quotaroot": "text"}})


# --- what belongs to nobody ----------------------------------------------------------------------


@pytest.mark.parametrize("table", sorted(NEVER_WRITTEN))
def test_promise_1_a_truth_table_cannot_be_declared_nor_be_written(table: str) -> None:
    with pytest.raises(NotGuarded, match=table):
        Projection("wrong", table, ("mailboxid", "uid"), every_truth_row, "messageid", "modseq")
    with pytest.raises(NotGuarded, match=f"names the truth table {table}"):
        Tally("wrong", table, "mailboxid", {})
    assert Tally("right", f"{table}_sums", "mailboxid", {}).columns == {"mailboxid"}
    forged = replace(PROJECTION)
    object.__setattr__(forged, "table", table)
    with pytest.raises(NotGuarded, match=f"^{table} holds the truth"):
        SetCells(forged, SLOT, NOW, {})


@pytest.mark.parametrize("round_", [0, -1])
def test_promise_2_a_delta_without_its_round_cannot_be_built(round_: int) -> None:
    with pytest.raises(NotGuarded, match="round"):
        AddToCounter(CURRENT_QUOTA, SLOT, "#private&bob", round_, {})
    assert AddToCounter(CURRENT_QUOTA, SLOT, "#private&bob", 1, {}).round == 1


def test_promise_1_every_truth_of_a_family_is_never_written() -> None:
    assert {family.truth.table for family in FAMILIES} <= NEVER_WRITTEN


@pytest.mark.parametrize("at", [0, -1])
def test_promise_2_a_write_without_its_guard_cannot_be_built(at: int) -> None:
    with pytest.raises(NotGuarded, match="guard"):
        SetCells(PROJECTION, SLOT, at, {})
    assert SetCells(PROJECTION, SLOT, 1, {}).at == 1


@pytest.mark.parametrize(
    "cql_type", ["list<text>", "blob", "frozen<address>", "double", "set<int>"]
)
def test_a_column_that_cannot_be_copied_is_refused_with_its_name(cql_type: str) -> None:
    """At the start, and not at the first difference."""
    schema = {table: {**columns, "extra": cql_type} for table, columns in SCHEMA.items()}
    with pytest.raises(Misconfigured, match=f"column messageidtable.extra is of type {cql_type}"):
        bind(LISTED, schema)


@pytest.mark.parametrize("table", SCHEMA)
@pytest.mark.parametrize("cql_type", ["text", "blob"])
def test_a_column_of_one_side_may_be_of_any_type_and_is_left_alone(
    table: str, cql_type: str
) -> None:
    schema = {**SCHEMA, table: {**SCHEMA[table], "extra": cql_type}}
    assert "extra" not in bind(LISTED, schema).projections[0].columns
