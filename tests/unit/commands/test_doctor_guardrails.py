"""Guardrails that refuse what the reconciler does are named by doctor, and refused at the start."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from checkpoints.cassandra import Store
from reconcilers.words.errors import Refused
from reconcilers.words.exit_codes import ExitCode
from streaming.commands.doctor.checks.check import Level
from streaming.commands.doctor.checks.guardrails import guardrails
from streaming.tables.guardrails import refuse_guardrails
from tests.fakes.checked_cluster import FakeCluster, looked

NONE = {
    "user_timestamps_enabled": "true",
    "allow_filtering_enabled": "true",
    "page_size_fail_threshold": "-1",
    "partition_keys_in_select_fail_threshold": "-1",
    "in_select_cartesian_product_fail_threshold": "-1",
    "column_value_size_fail_threshold": "null",
    "read_consistency_levels_disallowed": "[]",
    "write_consistency_levels_disallowed": "[ANY, TWO]",
}
"""As Cassandra ships; both thresholds of timestamps are null, or not there."""


def told(**changes: str) -> list[tuple[Level, str]]:
    found = looked(guardrails, FakeCluster(told=NONE | changes))
    return [(each.level, each.what) for each in found]


def test_those_that_cassandra_ships_stand_in_no_way() -> None:
    assert told() == [(Level.OK, "no guardrail of 10.0.0.1 refuses our statements")]
    assert told(minimum_timestamp_fail_threshold="null", page_size_fail_threshold="5000") == told()
    assert told(column_value_size_fail_threshold="1MiB") == told()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("user_timestamps_enabled", "false"),
        ("allow_filtering_enabled", "false"),
        ("intersect_filtering_query_enabled", "false"),
        ("minimum_timestamp_fail_threshold", "30d"),
        ("maximum_timestamp_fail_threshold", "1m"),
        ("page_size_fail_threshold", "1000"),
        ("partition_keys_in_select_fail_threshold", "20"),
        ("in_select_cartesian_product_fail_threshold", "25"),
        ("column_value_size_fail_threshold", "64KiB"),
        ("write_consistency_levels_disallowed", "[ANY, ONE]"),
        ("read_consistency_levels_disallowed", "{SERIAL}"),
    ],
)
def test_each_that_refuses_a_statement_of_ours_is_a_problem(name: str, value: str) -> None:
    ((level, what),) = told(**{name: value})
    assert level is Level.PROBLEM
    assert what.startswith(f"10.0.0.1 has {name}: ")


def test_records_of_counters_are_read_at_serial_whatever_the_settings_say() -> None:
    cluster = FakeCluster(told=NONE | {"read_consistency_levels_disallowed": "[SERIAL]"})
    local = {"consistency": "LOCAL_QUORUM", "serial_consistency": "LOCAL_SERIAL"}
    (found,) = looked(guardrails, cluster, cassandra={"username": "reconciler", **local})
    assert (found.level, "SERIAL" in found.what) == (Level.PROBLEM, True)


def test_levels_are_those_of_the_settings() -> None:
    cluster = FakeCluster(told=NONE | {"read_consistency_levels_disallowed": "[LOCAL_QUORUM]"})
    local = {"username": "reconciler", "consistency": "LOCAL_QUORUM"}
    assert [each.level for each in looked(guardrails, cluster)] == [Level.OK]
    assert [each.level for each in looked(guardrails, cluster, cassandra=local)] == [Level.PROBLEM]


def test_partitions_of_a_read_are_those_of_the_settings() -> None:
    cluster = FakeCluster(told=NONE | {"partition_keys_in_select_fail_threshold": "20"})
    few = {"username": "reconciler", "partitions_per_read": 20}
    assert [each.level for each in looked(guardrails, cluster)] == [Level.PROBLEM]
    assert [each.level for each in looked(guardrails, cluster, cassandra=few)] == [Level.OK]


@pytest.mark.parametrize(
    ("name", "value", "of", "says"),
    [
        ("minimum_replication_factor_fail_threshold", "3", "reconciler_canary", "made with 1"),
        ("minimum_replication_factor_fail_threshold", "4", "reconciler", "made with 2"),
        ("simplestrategy_enabled", "false", "reconciler_canary", "made with SimpleStrategy"),
        ("simplestrategy_enabled", "false", "reconciler", "made with SimpleStrategy"),
    ],
)
def test_what_refuses_a_keyspace_of_ours_matters_until_it_is_made(
    name: str, value: str, of: str, says: str
) -> None:
    three = {"class": "org.apache.cassandra.locator.NetworkTopologyStrategy", "paris": "3"}
    made = {"apache_james": three, "reconciler": three}
    cluster = FakeCluster(told=NONE | {name: value}, replicated=made)
    settings = {"username": "reconciler", "own_replication": 2}
    assert [each.level for each in looked(guardrails, cluster, cassandra=settings)] == [Level.OK]
    cluster.replicated = made | {of: {}}
    (found,) = looked(guardrails, cluster, cassandra=settings)
    assert found.level is Level.PROBLEM
    assert found.what.endswith(f"but keyspace {of} is {says}")
    assert "superuser" in found.advice


def test_a_superuser_is_not_bound_nor_anybody_where_no_password_is_asked_for() -> None:
    off = NONE | {"user_timestamps_enabled": "false"}
    assert looked(guardrails, FakeCluster(told=off, superuser=True)) == []
    assert looked(guardrails, FakeCluster(told=off), cassandra={}) == []


def test_where_they_cannot_be_read_that_is_a_warning() -> None:
    (found,) = looked(guardrails, FakeCluster(refuses="no SELECT on system_views"))
    assert found.level is Level.WARNING
    assert "the guardrails are not known: no SELECT on system_views" in found.what


def trial_refused(said: str) -> Store:
    """What the server says to the write that is tried."""

    def run(doing: str, requests: Any) -> None:
        ((cql, (stream,)),) = requests
        assert "USING TIMESTAMP 1" in cql
        assert "no stream has this name" in stream
        raise Refused(f"{doing}: {said}")

    return cast(Store, SimpleNamespace(prepare=lambda cql: cql, run=run))


@pytest.mark.parametrize("name", ["user_timestamps", "minimum_timestamp"])
def test_a_stream_does_not_start_where_no_write_time_is_allowed(name: str) -> None:
    said = f"InvalidRequest: Guardrail {name} violated"
    with pytest.raises(Refused, match=f"{said}: set user_timestamps_enabled: true") as refused:
        refuse_guardrails(trial_refused(said))
    assert refused.value.exit_code is ExitCode.REFUSED


def test_a_refusal_for_another_reason_is_told_without_advice_on_write_times() -> None:
    said = "Unauthorized: User reconciler has no MODIFY permission on <table settled_offsets>"
    with pytest.raises(Refused, match=f"{said}$"):
        refuse_guardrails(trial_refused(said))
