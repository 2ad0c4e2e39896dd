"""What the contract tests run against: the fakes, and the real thing in a keyspace of its own."""

import uuid
from collections.abc import Iterator
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import Store, create_schema
from reconcilers.declared.family import Family
from streaming.settings import CassandraSettings
from streaming.tables import open_session
from tests.contract.making import KINDS, a_family, a_name
from tests.endpoints import Endpoints


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def reconciler_keyspace(request: pytest.FixtureRequest) -> Iterator[str]:
    """The reconciler's keyspace under a name of its own; dropped after the run."""
    session = request.getfixturevalue("cassandra")
    keyspace = f"reconciler_{uuid.uuid4().hex[:12]}"
    create_schema(session, keyspace)
    yield keyspace
    session.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")


@pytest.fixture
def store(request: pytest.FixtureRequest, reconciler_keyspace: str) -> Store:
    """Tests share the tables: each uses ids of its own."""
    return Store(request.getfixturevalue("cassandra"), reconciler_keyspace)


@pytest.fixture
def real(kind: str, request: pytest.FixtureRequest) -> Store | None:
    """Where Cassandra is tested, its store; None where the fake is."""
    return None if kind == "memory" else request.getfixturevalue("store")


@pytest.fixture
def stream() -> str:
    """One that no other test keeps anything of."""
    return a_name("message")


@pytest.fixture
def mailbox() -> UUID:
    return uuid.uuid1()


@pytest.fixture
def family() -> Family:
    """One that no other test writes findings of."""
    return a_family()


@pytest.fixture(scope="module")
def session(stack: Endpoints) -> Iterator[Session]:
    """As the product connects."""
    made = open_session(CassandraSettings(hosts=(stack.cassandra_host,), port=stack.cassandra_port))
    yield made
    made.cluster.shutdown()
