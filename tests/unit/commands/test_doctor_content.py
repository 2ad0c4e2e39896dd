"""What `reconcile doctor` says of content: whether a row can be judged by it at all."""

from __future__ import annotations

import pytest

from reconcilers.declared.family import Schema
from streaming.commands.doctor.checks import permissions as rights
from streaming.commands.doctor.checks.check import Level
from streaming.commands.doctor.checks.content import content_readable
from tests.fakes.checked_cluster import JAMES, FakeCluster, looked
from tests.unit.commands.test_doctor_rights import as_listed, needed

WITHOUT = {name: columns for name, columns in JAMES.items() if not name.startswith("messagev")}


def test_both_tables_are_read() -> None:
    found = looked(content_readable)
    assert [(each.level, each.what) for each in found] == [
        (Level.OK, "messagev2 can be read"),
        (Level.OK, "messagev3 can be read"),
    ]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (WITHOUT, "no table messagev2 or messagev3"),
        (JAMES | {"messagev4": {"messageid": "timeuuid"}}, "table messagev4 is not known"),
    ],
)
def test_where_content_is_not_read_that_is_told(schema: Schema, told: str) -> None:
    (only,) = looked(content_readable, schema=schema)
    assert only.level is Level.WARNING
    assert told in only.what
    assert "waits for a person" in only.what


def test_a_table_that_may_not_be_read_is_told() -> None:
    found = looked(content_readable, FakeCluster(refuses="no SELECT permission"))
    assert {each.level for each in found} == {Level.WARNING}
    assert "deploy/cassandra/roles.cql" in found[0].advice


def test_the_right_to_see_content_is_granted_by_fix_and_its_lack_is_no_problem() -> None:
    right = rights.Right("SELECT", "apache_james", "messagev3")
    assert right in needed()
    (only,) = looked(rights.role, FakeCluster(granted=as_listed(set(needed() - {right}))))
    assert only.level is Level.WARNING
    assert only.cql == ('GRANT SELECT ON TABLE apache_james.messagev3 TO "reconciler"',)
