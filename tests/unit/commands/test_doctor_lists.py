"""`reconcile doctor` on access rights: which table has the lists, and what the setting says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streaming.commands.doctor.checks.check import Check, Level
from streaming.commands.doctor.checks.lists import lists_of_rights
from tests.builders.rights import BOB, event
from tests.fakes.checked_cluster import JAMES, NEWER, FakeCluster, looked

OF_LISTS = {"event": event(0, {}, {BOB: "lr"})}
OF_FILTERS = {"event": json.dumps({"type": "filtering-rule-set-defined", "eventId": 0})}
ALL: dict[str, list[dict[str, Any]]] = {
    "eventstore": [OF_FILTERS, {"event": None}, {"event": "{"}, OF_LISTS],
    "aclv2": [{}],
    "acl": [{"acl": json.dumps({"entries": {BOB: "lr"}})}],
}
"""Rows of each table, the newest truth first."""


def told(truth: str, rows: dict[str, list[dict[str, Any]]], schema: Any = JAMES) -> list[Check]:
    cluster = FakeCluster(rows=rows, empty=frozenset({"aclv2"} - rows.keys()))
    return looked(lists_of_rights, cluster, schema, rights={"truth": truth})


@pytest.mark.parametrize("found", ALL)
def test_the_newest_table_with_lists_is_the_truth(found: str) -> None:
    tables = [*ALL]
    rows = {each: ALL[each] for each in tables[tables.index(found) :]}
    (right,) = told(found, rows)
    assert right.level is Level.OK
    assert found in right.what
    for other in (*tables, "off"):
        if other != found:
            (wrong,) = told(other, rows)
            assert wrong.level is Level.WARNING
            assert wrong.what.startswith(
                f"{found} has lists of rights, but rights.truth is {other}: "
            )
            assert wrong.advice == f'set rights.truth = "{found}"'


def test_events_of_other_things_are_no_lists() -> None:
    (only,) = told("eventstore", {"eventstore": [OF_FILTERS], "aclv2": [{}]})
    assert only.what.startswith("aclv2 has lists")


@pytest.mark.parametrize("schema", [JAMES, NEWER, {}], ids=["3.8", "3.9 and later", "none"])
def test_nothing_is_said_of_a_keyspace_without_lists_unless_they_are_compared(schema: Any) -> None:
    assert told("off", {}, schema) == []
    (only,) = told("eventstore", {}, schema)
    assert (only.level, "no table has lists" in only.what) == (Level.OK, True)


def test_tables_that_may_not_be_read_are_told_of_elsewhere() -> None:
    assert looked(lists_of_rights, FakeCluster(refuses="no SELECT")) == []
