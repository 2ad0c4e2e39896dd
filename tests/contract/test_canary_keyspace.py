"""Canaries at a real Cassandra whose admin changes how their keyspace is replicated."""

import time
import uuid
from collections.abc import Iterator

import pytest
from cassandra.cluster import Session

from checkpoints.clock import now_micros
from deploy.mailserver.james import create_schema
from reconcilers.errors import Refused
from streaming.canary.writer import CanaryWriter
from streaming.settings import CassandraSettings
from streaming.tables import Canaries, canary_schema, open_session
from tests.endpoints import Endpoints

WATCHED = ("imapuidtable", "messageidtable")
THREE = "{'class': 'SimpleStrategy', 'replication_factor': 3}"
BY_DATA_CENTRE = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 3}"
HERE = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}"


@pytest.fixture(scope="module")
def session(stack: Endpoints) -> Iterator[Session]:
    """The product's own."""
    made = open_session(CassandraSettings(hosts=(stack.cassandra_host,), port=stack.cassandra_port))
    yield made
    made.cluster.shutdown()


@pytest.fixture
def canaries(session: Session) -> Iterator[Canaries]:
    """Of a James's keyspace and with one of their own, as `reconcile doctor --fix` makes it."""
    mail, own = (f"{name}_{uuid.uuid4().hex[:12]}" for name in ("mail", "canaries"))
    create_schema(session, mail)
    for table in WATCHED:
        session.execute(f"ALTER TABLE {mail}.{table} WITH cdc = true")
    canary_schema.create(session, own)
    yield Canaries(session, own, mail, WATCHED)
    for keyspace in (mail, own):
        session.execute(f"DROP KEYSPACE {keyspace}")


@pytest.mark.parametrize("replication", [THREE, BY_DATA_CENTRE])
def test_where_another_node_may_tell_of_a_canary_nothing_is_proven(
    session: Session, canaries: Canaries, replication: str
) -> None:
    writer = CanaryWriter(canaries, lambda place: (0,), now_micros, time.monotonic)
    writer.begin()
    writer.write()
    written, watched = canaries.newest(), canaries.watched()
    assert (watched is None, list(written.values()) == [None]) == (False, False)
    session.execute(f"ALTER KEYSPACE {canaries.ring._keyspace} WITH replication = {replication}")
    with pytest.raises(Refused, match="its canaries prove nothing"):
        writer.write()
    assert (canaries.watched(), canaries.marks()) == (None, None)
    session.execute(canary_schema.one_copy(canaries.ring._keyspace))
    writer.write()
    assert canaries.newest() != written
    assert canaries.watched() == watched


def test_one_copy_may_be_named_by_the_only_data_centre(
    session: Session, canaries: Canaries
) -> None:
    session.execute(f"ALTER KEYSPACE {canaries.ring._keyspace} WITH replication = {HERE}")
    canaries.check()
    assert canaries.watched() is not None
