"""The core scenario on the release that James ships with: Cassandra 4.1 lacks nothing we use."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from deploy.comparison.full_comparison import full_comparison
from deploy.demo.oddities import plant_repaired
from deploy.demo.planter import Planter
from deploy.embedded import Stack
from deploy.mailserver.james import create_schema
from deploy.mailserver.ledger import Ledger, held_rows
from tests.endpoints import Endpoints
from tests.sessions import session_at
from tests.stack.embedded import wanted
from tests.stack.scenes import begin_at_the_end
from tests.stack.streams import Stream, until, write_settings

pytestmark = pytest.mark.stack


@pytest.fixture
def older(tmp_path: Path) -> Iterator[Stack]:
    with Stack(tmp_path / "stack", wanted(release="4.1")) as stack:
        yield stack


@pytest.fixture
def session(older: Stack) -> Iterator[Session]:
    with session_at("127.0.0.1", older.cassandra_port) as made:
        yield made


@pytest.mark.long(part="servers")
def test_every_planted_difference_is_repaired_on_cassandra_4_1(
    older: Stack, session: Session, tmp_path: Path
) -> None:
    create_schema(session, older.keyspace)
    older.capture_tables()
    endpoints = Endpoints.of(older.describe())
    own = f"reconciler_{uuid.uuid4().hex[:8]}"
    config = write_settings(tmp_path / "reconcile.toml", endpoints, older.keyspace, own, {})
    begin_at_the_end(session, config)  # what the truth never had is to be born while all is heard
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


def verified(stream: Stream) -> set[tuple[str, int]]:
    return {
        (line["finding"]["mailboxid"], line["finding"]["uid"])
        for line in stream.said("verified: messages")
    }
