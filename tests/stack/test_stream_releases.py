"""The core scenario on the release that James ships with: Cassandra 4.1 lacks nothing we use."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session

from deploy import captured
from deploy.comparison.full_comparison import full_comparison
from deploy.demo.planted import plant_repaired
from deploy.demo.planter import Planter
from deploy.embedded import Stack, Wanted
from deploy.embedded.waiting import HANG_S
from deploy.mailserver.james import create_schema
from deploy.mailserver.ledger import Ledger, held_rows
from tests.endpoints import Endpoints
from tests.stack.streams import Stream, until, write_settings

pytestmark = pytest.mark.stack


@pytest.fixture
def older(tmp_path: Path) -> Iterator[Stack]:
    with Stack(
        tmp_path / "stack", Wanted(release="4.1", tables=captured.TABLES, schema=captured.SCHEMA)
    ) as stack:
        yield stack


def session_of(stack: Stack) -> Session:
    profile = ExecutionProfile(request_timeout=HANG_S)
    cluster = Cluster(
        ["127.0.0.1"],
        port=stack.cassandra_port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=HANG_S,
        control_connection_timeout=HANG_S,
    )
    return cluster.connect()


def test_every_planted_difference_is_repaired_on_cassandra_4_1(
    older: Stack, tmp_path: Path
) -> None:
    session = session_of(older)
    create_schema(session, older.keyspace)
    older.capture_tables()
    endpoints = Endpoints.of(older.describe())
    own = f"reconciler_{uuid.uuid4().hex[:8]}"
    config = write_settings(tmp_path / "reconcile.toml", endpoints, older.keyspace, own, {})
    with Stream(config) as stream:
        stream.wait_until_watching()
        ledger = Ledger()
        plant_repaired(Planter(session, older.keyspace, ledger))
        planted = {row for entry in ledger.entries() for row in entry.rows}
        assert {each.row for each in full_comparison(session, older.keyspace)} == planted
        assert held_rows(ledger.entries()) == frozenset()
        until(
            "both tables agree",
            lambda: not list(full_comparison(session, older.keyspace)),
        )
        until("each repair was seen to hold", lambda: len(verified(stream)) == len(planted))
        assert stream.stop() == 0
    session.cluster.shutdown()


def verified(stream: Stream) -> set[tuple[str, int]]:
    return {
        (line["finding"]["mailboxid"], line["finding"]["uid"])
        for line in stream.said("verified: messages")
    }
