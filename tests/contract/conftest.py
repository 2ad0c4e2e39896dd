"""What the contract tests run against: the fakes, and the real thing in a keyspace of its own."""

import uuid
from collections.abc import Iterator

import pytest

from checkpoints.cassandra import Store, create_schema
from tests.contract.making import KINDS


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
