"""What `reconcile doctor` says of canaries: their table, and whose come back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

import pytest

from checkpoints.bookmarks import Bookmark
from reconcilers.declared.family import Schema
from reconcilers.words.model import Micros
from streaming.commands.doctor.checks import ON_CASSANDRA, canary, permissions
from streaming.commands.doctor.checks.check import CassandraContext, Check, Level
from streaming.settings import Settings
from streaming.tables import Cluster
from tests.builders.canaries import reached
from tests.builders.rows import NOW, SECOND
from tests.fakes.checked_cluster import NETWORK, FakeCluster, looked

TABLE: Schema = {
    "canary": {"place": "text", "idle_us": "bigint", "written_ms": "bigint", "partitions": "int"}
}
ON_ONE_NODE = {"class": "org.apache.cassandra.locator.SimpleStrategy", "replication_factor": "1"}
NODES = {"n1": "10.0.0.1", "n2": "10.0.0.2"}


class WithCanaries(FakeCluster):
    """Two nodes; the canaries' keyspace has these tables, of which these are captured."""

    tables: Schema = TABLE

    def schema(self, keyspace: str) -> Schema:
        assert keyspace == "reconciler_canary"
        return self.tables

    def nodes(self) -> Mapping[str, str]:
        return NODES

    def replication(self, keyspace: str) -> dict[str, str]:
        assert keyspace == "reconciler_canary"
        return self.replicated.get(keyspace, ON_ONE_NODE)

    def gc_grace(self, keyspace: str) -> dict[str, int]:
        return {"canary": 864000}


def context(cluster: WithCanaries) -> CassandraContext:
    settings = Settings()
    return CassandraContext(settings, settings.families(), cast(Cluster, cluster))


def of_table(cluster: WithCanaries) -> Check:
    check, *others = canary.canary_table(context(cluster))
    assert all(each.level is Level.OK for each in others)
    return check


def test_a_table_that_is_captured_is_fine() -> None:
    assert of_table(WithCanaries(captured=frozenset({"canary"}))).level is Level.OK


def test_a_table_that_is_not_there_is_made_by_fix() -> None:
    cluster = WithCanaries()
    cluster.tables = {}
    check = of_table(cluster)
    assert check.level is Level.PROBLEM
    assert [cql.split()[1] for cql in check.cql] == ["KEYSPACE", "TABLE"]


def test_its_keyspace_is_made_before_rights_on_it_are_granted() -> None:
    """Cassandra refuses a grant on a keyspace that is missing."""
    cluster = WithCanaries()
    cluster.tables = {}
    asked = [each for each in ON_CASSANDRA if each in (canary.canary_table, permissions.role)]
    checks = [check for each in asked for check in looked(each, cluster)]
    cql = [statement for check in checks for statement in check.cql]
    place = "KEYSPACE.* reconciler_canary"
    made = next(n for n, each in enumerate(cql) if re.match(f"CREATE {place}", each))
    granted = next(n for n, each in enumerate(cql) if re.match(f"GRANT .*{place}", each))
    assert made < granted


def test_a_table_of_an_older_version_gets_its_column_by_fix() -> None:
    cluster = WithCanaries(captured=frozenset({"canary"}))
    cluster.tables = {"canary": {"place": "text"}}
    check = of_table(cluster)
    assert check.level is Level.PROBLEM
    assert "reconciler_canary.canary lacks the columns" in str(check)
    added = "idle_us bigint, written_ms bigint, partitions int"
    assert check.cql == (f"ALTER TABLE reconciler_canary.canary ADD ({added})",)


def test_a_table_that_is_not_captured_is_captured_by_fix() -> None:
    check = of_table(WithCanaries(captured=frozenset()))
    assert check.level is Level.PROBLEM
    assert "cdc = true" in check.cql[0]


@pytest.mark.parametrize(
    "replication",
    [
        {**ON_ONE_NODE, "replication_factor": "3"},
        {"class": NETWORK, "paris": "1", "rome": "1"},
        {"class": NETWORK, "paris": "1"},  # none in Rome
    ],
)
def test_a_canary_of_several_nodes_proves_nothing(replication: dict[str, str]) -> None:
    cluster = WithCanaries(captured=frozenset({"canary"}))
    cluster.replicated = {"reconciler_canary": replication}
    check = of_table(cluster)
    assert check.level is Level.PROBLEM
    assert check.what.startswith("keyspace reconciler_canary keeps more than one copy of a row, or")
    assert list(canary.canaries_heard(context(cluster))) == []
    assert check.cql == (
        "ALTER KEYSPACE reconciler_canary"
        " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    )


def heard(numbers: Mapping[str, Micros]) -> dict[str, str]:
    """What is said of each node, by its address."""
    lanes = {(node, "james", part): reached(at) for node, at in numbers.items() for part in (0, 1)}
    newest = Bookmark("stream", {}, recorded_at=NOW, heard=lanes)
    found = [str(each) for each in canary.heard(context(WithCanaries()), newest)]
    return {next(at for at in NODES.values() if at in each): each for each in found}


def test_a_node_whose_canaries_come_back_within_the_usual_time_is_fine() -> None:
    usual = NOW - (45 + 10) * SECOND - canary.SLACK
    told = heard({"n1": usual, "n2": usual - SECOND})
    assert told["10.0.0.1"].startswith("ok")
    assert "no canary of 10.0.0.2 was received for 116 s" in told["10.0.0.2"]


def test_a_node_that_nobody_heard_of_is_named() -> None:
    told = heard({"n1": NOW})
    assert "no canary of 10.0.0.2 was ever received" in told["10.0.0.2"]
    assert told["10.0.0.2"].startswith("problem")


@pytest.mark.parametrize(
    ("partitions", "warned"), [(1_000, []), (1_001, ["canary.interval to 1.0"])]
)
def test_an_interval_that_is_short_for_so_many_lanes_is_told(
    partitions: int, warned: list[str]
) -> None:
    lanes = {(node, "james", part): reached(NOW) for node in NODES for part in range(partitions)}
    newest = Bookmark("stream", {}, recorded_at=NOW, heard=lanes)
    found = list(canary.heard(context(WithCanaries()), newest))
    told = [each for each in found if each.level is Level.WARNING]
    assert len(told) == len(warned)
    assert all(words in str(each) for words, each in zip(warned, told, strict=True))


def test_the_partition_that_is_furthest_behind_counts() -> None:
    lanes = {("n1", "james", 0): reached(NOW), ("n1", "james", 1): reached(NOW - 3_600 * SECOND)}
    newest = Bookmark("stream", {}, recorded_at=NOW, heard=lanes)
    first = next(canary.heard(context(WithCanaries()), newest))
    assert first.level is Level.PROBLEM
