"""Fixtures that every kind of test may use: a running stack, a driver session, a mail keyspace."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, Session
from cassandra.policies import WhiteListRoundRobinPolicy

from deploy.demo import james
from tests.containers.stack import missing_docker, running_containers
from tests.endpoints import Endpoints
from tests.stack.embedded import running_embedded

RUNNING_STACK = "RECONCILE_TEST_STACK"
"""Names a JSON file as `python -m deploy.embedded up` prints it: that stack is used as it is."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stack",
        choices=("embedded", "containers"),
        default="embedded",
        help="what runs the servers: Java processes from Maven jars, or Docker",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for the servers is marked, wherever it stands."""
    for item in items:
        if "stack" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.stack)


@pytest.fixture(scope="session")
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Endpoints]:
    """One stack for the whole run, the same endpoints whatever runs it."""
    if running := os.environ.get(RUNNING_STACK):
        yield Endpoints.from_file(Path(running))
        return
    data = tmp_path_factory.mktemp("stack")
    if request.config.getoption("--stack") == "containers":
        if reason := missing_docker():
            pytest.skip(reason)
        with running_containers(data) as endpoints:
            yield endpoints
    else:
        with running_embedded(data) as endpoints:
            yield endpoints


@pytest.fixture(scope="session")
def cassandra(stack: Endpoints) -> Iterator[Session]:
    """A driver session at the stack, with rights to create and drop."""
    profile = ExecutionProfile(
        load_balancing_policy=WhiteListRoundRobinPolicy([stack.cassandra_host]),
        request_timeout=60,
    )
    cluster = Cluster(
        [stack.cassandra_host],
        port=stack.cassandra_port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=30,
        control_connection_timeout=30,
    )
    try:
        yield cluster.connect()
    finally:
        cluster.shutdown()


@pytest.fixture
def fresh_keyspace(cassandra: Session) -> Iterator[str]:
    """A keyspace of its own with James's tables, change capture on; dropped after the test."""
    keyspace = f"mail_{uuid.uuid4().hex[:12]}"
    james.create_schema(cassandra, keyspace)
    james.enable_cdc(cassandra, keyspace)
    yield keyspace
    cassandra.execute(f"DROP KEYSPACE IF EXISTS {keyspace}", timeout=120)
