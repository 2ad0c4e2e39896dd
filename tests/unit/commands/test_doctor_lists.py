"""`reconcile doctor` on access rights: which table has the lists, and what the setting says."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest

from reconcilers.words.errors import Misconfigured
from streaming.commands.doctor.checks.check import Check, Level
from streaming.commands.doctor.checks.lists import lists_of_rights
from streaming.commands.wiring.james_version import refuse_unfinished_migration
from streaming.settings import Settings
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


@pytest.mark.parametrize(("reached", "found"), [((8, 9), "acl"), ((9, 10), "eventstore")])
def test_until_lists_were_migrated_james_writes_the_older_table(
    reached: tuple[int, ...], found: str
) -> None:
    """Its migration copies them one by one, and ends at the first that fails."""
    rows = {**ALL, "schemaversion": [{"value": each} for each in reached]}
    schema = {**JAMES, "schemaversion": {"key": "timeuuid", "value": "int"}}
    (right,) = told(found, rows, schema)
    assert (right.level, found in right.what) == (Level.OK, True)
    (wrong,) = told("eventstore" if found == "acl" else "acl", rows, schema)
    assert (wrong.level, wrong.advice) == (Level.WARNING, f'set rights.truth = "{found}"')


@pytest.mark.parametrize(
    ("truth", "reached", "refused"),
    [
        ("eventstore", [9], True),
        ("eventstore", [9, 10], False),
        ("eventstore", [], False),
        ("acl", [9], False),
        ("off", [9], False),
    ],
)
def test_no_stream_repairs_rights_by_copies_of_lists(
    truth: str, reached: list[int], refused: bool
) -> None:
    """Users go on changing the older lists: a copy would take and give back rights."""
    rows = {"schemaversion": [{"value": each} for each in reached]}
    schema = {**JAMES, "schemaversion": {"key": "timeuuid", "value": "int"}}
    settings = Settings.model_validate({"rights": {"truth": truth}})
    why = pytest.raises(Misconfigured, match="so James stores lists of rights in acl")
    with why if refused else nullcontext():
        refuse_unfinished_migration(settings, FakeCluster(rows=rows), schema)
    refuse_unfinished_migration(settings, FakeCluster(refuses="no SELECT"), schema)
    refuse_unfinished_migration(settings, FakeCluster(rows=rows), NEWER)


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
