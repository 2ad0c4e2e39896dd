"""`reconcile doctor` on tables of quotas: rows there, but under names that nobody reads."""

from typing import Any

import pytest

from streaming.commands.checks import quotas
from streaming.commands.checks.check import Level
from tests.unit.test_doctor_checks import EVERYTHING, JAMES, NEWER, FakeCluster, looked


def newer(identifier: str, component: str, quotatype: str) -> dict[str, Any]:
    row = {"identifier": identifier, "quotacomponent": component, "quotatype": quotatype}
    return {**row, "currentvalue": 5}


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
    rows = [
        {"quotaroot": root, "messagecount": 1, "storage": 2} for root in (f"{ANA}@example.org", ANA)
    ]
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
