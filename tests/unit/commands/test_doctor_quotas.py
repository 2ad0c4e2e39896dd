"""`reconcile doctor` on tables of quotas: rows there, but under names that nobody reads."""

from typing import Any, cast

import pytest

from reconcilers.counters.live_table import APART, WRITTEN
from streaming.commands.doctor.checks import permissions, quotas
from streaming.commands.doctor.checks import schema as structure
from streaming.commands.doctor.checks.check import Check, Level
from streaming.settings import Settings
from streaming.tables import Cluster
from tests.fakes.checked_cluster import EVERYTHING, JAMES, NEWER, FakeCluster, looked


def newer(identifier: str, component: str, quotatype: str) -> dict[str, Any]:
    row = {"identifier": identifier, "quotacomponent": component, "quotatype": quotatype}
    return {**row, WRITTEN: NOW}


NOW = 1_800_000_000_000_000
ANA = "#private&ana@example.org"
OTHERS = [
    newer("ana@example.org", "JMAP_UPLOADS", "size"),
    newer(f"{ANA}@example.org", "SIEVE", "size"),
]


@pytest.mark.parametrize(
    "row",
    [newer(f"{ANA}@example.org", "MAILBOX", "count"), newer("#private&ana", "MAILBOX", "size")],
    ids=["a domain", "no domain"],
)
def test_rows_as_james_names_them_are_read(row: dict[str, Any]) -> None:
    cluster = FakeCluster(rows={"quotacurrentvalue": [*OTHERS, row]})
    (only,) = looked(quotas.quotas_readable, cluster, NEWER, **EVERYTHING)
    assert only.level is Level.OK


@pytest.mark.parametrize(
    "row",
    [
        newer(ANA, "MAILBOX", "count"),
        newer(f"{ANA}@example.org", "MAILBOX", "COUNT"),
        newer(f"{ANA}@example.org", "mailbox", "count"),
    ],
    ids=["the domain once", "type in upper case", "component in lower case"],
)
def test_rows_under_other_names_are_a_problem(row: dict[str, Any]) -> None:
    cluster = FakeCluster(rows={"quotacurrentvalue": [row, *OTHERS]})
    (only,) = looked(quotas.quotas_readable, cluster, NEWER, **EVERYTHING)
    assert only.level is Level.PROBLEM
    assert "quotacurrentvalue has rows, but none of 3 is under the names" in only.what
    assert f"identifier {row['identifier']}" in only.what


def test_the_older_table_has_the_domain_once() -> None:
    """James's own recount of quotas takes from a row with the domain twice: nobody reads it."""
    rows = [{"quotaroot": root, WRITTEN: NOW} for root in (f"{ANA}@example.org", ANA)]
    for there, level in ((rows, Level.OK), (rows[:1], Level.PROBLEM)):
        cluster = FakeCluster(rows={"currentquota": there})
        (only,) = looked(quotas.quotas_readable, cluster, JAMES, **EVERYTHING)
        assert only.level is level


def test_nothing_is_said_of_a_table_without_rows_or_of_none() -> None:
    for schema in (JAMES, NEWER, {}):
        assert looked(quotas.quotas_readable, FakeCluster(), schema, **EVERYTHING) == []
    assert looked(quotas.quotas_readable, FakeCluster(), NEWER) == []


def test_a_table_that_may_not_be_read_is_a_problem() -> None:
    cluster = FakeCluster(refuses="no SELECT")
    (only,) = looked(quotas.quotas_readable, cluster, NEWER, **EVERYTHING)
    assert (only.level, only.what) == (Level.PROBLEM, "no SELECT")


# --- two tables -----------------------------------------------------------------------------------

ROWS = {
    "currentquota": [{"quotaroot": ANA, WRITTEN: NOW}],
    "quotacurrentvalue": [newer(f"{ANA}@example.org", "MAILBOX", "count")],
}


class BothTables(FakeCluster):
    """As an upgrade of James leaves them."""

    def schema(self, _keyspace: str) -> dict[str, dict[str, str]]:
        return JAMES | NEWER


def told(rows: dict[str, list[dict[str, Any]]], table: str = "auto") -> dict[str, list[Check]]:
    """What doctor says of quotas there: which is chosen, where they are kept, what is granted."""
    sections = {**EVERYTHING, "tally": {**EVERYTHING["tally"], "quota_table": table}}
    settings = Settings.model_validate({"cassandra": {"username": "reconciler"}, **sections})
    context = quotas.context_of(settings, cast(Cluster, BothTables(rows=rows)))
    return {
        "chosen": list(quotas.one_quota_table(context)),
        "kept": [each for each in structure.james_tables(context) if "is kept" in each.what],
        "rights": list(permissions.role(context)),
    }


def modified(found: dict[str, list[Check]]) -> set[str]:
    asked = {cql for each in found["rights"] for cql in each.cql if "quota" in cql}
    assert {cql.split(".")[1].split()[0] for cql in asked if "SELECT" in cql} >= {
        cql.split(".")[1].split()[0] for cql in asked if "MODIFY" in cql
    }
    return {cql.split(".")[1].split()[0] for cql in asked if "MODIFY" in cql}


@pytest.mark.parametrize(
    ("older", "newer_at", "kept"),
    [(NOW, NOW - APART, "currentquota"), (NOW - APART, NOW, "quotacurrentvalue")],
)
def test_two_tables_are_warned_of_and_the_one_that_james_writes_is_kept(
    older: int, newer_at: int, kept: str
) -> None:
    rows = {
        "currentquota": [{"quotaroot": ANA, WRITTEN: older}],
        "quotacurrentvalue": [{**ROWS["quotacurrentvalue"][0], WRITTEN: newer_at}],
    }
    found = told(rows)
    (only,) = found["chosen"]
    assert only.level is Level.WARNING
    assert f"both exist: {kept} is kept, last written" in only.what
    assert only.advice.startswith(f"set tally.quota_table = {kept}")
    assert f"current_quota is kept in {kept}" in {each.what for each in found["kept"]}
    assert modified(found) == {kept}


@pytest.mark.parametrize("rows", [ROWS, {}], ids=["written at one time", "no rows"])
def test_two_tables_that_james_may_write_are_a_problem(
    rows: dict[str, list[dict[str, Any]]],
) -> None:
    found = told(rows)
    (only,) = found["chosen"]
    assert only.level is Level.PROBLEM
    assert "both exist: which James writes is not clear" in only.what
    assert not any("current_quota" in each.what for each in found["kept"])
    assert modified(found) == set()


@pytest.mark.parametrize("table", ["currentquota", "quotacurrentvalue"])
def test_a_setting_decides_and_is_compared_with_what_is_seen(table: str) -> None:
    for rows in (ROWS, {table: ROWS[table]}):
        found = told(rows, table)
        assert [each.level for each in found["chosen"]] == [Level.OK]
        assert modified(found) == {table}
    (other,) = ROWS.keys() - {table}
    found = told({other: ROWS[other]}, table)
    assert [each.level for each in found["chosen"]] == [Level.WARNING]
    assert modified(found) == {table}


def test_what_cannot_be_read_keeps_none() -> None:
    settings = Settings.model_validate(EVERYTHING)
    context = quotas.context_of(settings, cast(Cluster, BothTables(refuses="no SELECT")))
    (only,) = quotas.one_quota_table(context)
    assert only.level is Level.PROBLEM
    assert "no SELECT" in only.what
