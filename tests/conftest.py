"""Fixtures that every kind of test may use: a running stack, a driver session, a mail keyspace."""

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import cast, get_args

import pytest
from cassandra.cluster import Session
from hypothesis import HealthCheck, settings

from deploy import quick_spark as quick
from deploy.embedded import interrupts
from deploy.embedded.spec import DEFAULT_RELEASE, Caches, CassandraRelease
from deploy.mailserver import james
from tests.containers.stack import missing_docker, running_containers
from tests.endpoints import Endpoints, Running
from tests.sessions import copies_of, create_keyspace, session_at
from tests.stack.embedded import running_embedded, supervised
from tests.wheel import Installed, built, installed

RUNNING_STACK = "RECONCILE_TEST_STACK"
"""Names a JSON file as `python -m deploy.embedded up` prints it: that stack is used as it is."""
LONG_S = 3600
"""The limit of a long test or a benchmark; as that of the others, against hangs only."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stack",
        choices=("embedded", "containers"),
        default="embedded",
        help="what runs the servers: Java processes from Maven jars, or Docker",
    )
    parser.addoption(
        "--release",
        choices=get_args(CassandraRelease),
        default=DEFAULT_RELEASE,
        help="which Cassandra the embedded stack runs",
    )
    parser.addoption(
        "--overlay",
        action="append",
        default=[],
        metavar="FILE",
        help="of deploy/cassandra: settings of the embedded node in place of cassandra.yaml's",
    )


def pytest_configure() -> None:
    """An example of hypothesis may take as long as it needs."""
    settings.register_profile(
        "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for the servers is marked, wherever it stands; what takes long may."""
    for item in items:
        if "running" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.stack)
        if any(map(item.get_closest_marker, ("long", "bench"))):
            item.add_marker(pytest.mark.timeout(LONG_S))
    items.sort(key=_shares_a_stream)


def _shares_a_stream(item: pytest.Item) -> bool:
    """Whether a test uses the stream that many share: those come last.

    A running stream takes a third of a core. A module may have its own under the same name.
    """
    shares = "scene" in getattr(item, "fixturenames", ())
    return shares and not hasattr(getattr(item, "module", None), "scene")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Whoever ends the run by a signal ends its servers too: the fixtures are torn down."""

    def stop(by: str) -> None:
        session.shouldstop = f"ended by {by}"  # should somebody swallow the interrupt

    interrupts.raise_once(stop)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """A fixture that is interrupted in its teardown would keep others from theirs."""
    with interrupts.held_back():
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Here the fixtures of an interrupted run are torn down."""
    interrupts.ignore()


@pytest.fixture(scope="session")
def quick_spark() -> Iterator[None]:
    """Every Spark that begins from here on starts quickly, that of a command too."""
    with pytest.MonkeyPatch.context() as patched:
        for name, value in quick.environment().items():
            patched.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of the sources, installed where nothing else of the project is."""
    folder = tmp_path_factory.mktemp("wheel")
    return installed(built(folder / "built"), folder / "environment")


@pytest.fixture(scope="session")
def release(request: pytest.FixtureRequest) -> CassandraRelease:
    """Which Cassandra this run is for."""
    return cast(CassandraRelease, request.config.getoption("--release"))


@pytest.fixture(scope="session")
def running(
    request: pytest.FixtureRequest,
    release: CassandraRelease,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    """The stack of this run with what its starter can do; tests rather take `stack`.

    In a run of benchmarks only, Cassandra's caches are as large as a production node's.
    """
    if file := os.environ.get(RUNNING_STACK):
        yield Running(Endpoints.from_file(Path(file)), supervised)
        return
    data = tmp_path_factory.mktemp("stack")
    if request.config.getoption("--stack") == "containers":
        if reason := missing_docker():
            pytest.skip(reason)
        with running_containers(data) as started:
            yield started
    else:
        measured = all(each.get_closest_marker("bench") for each in request.session.items)
        caches: Caches = "production" if measured else "small"
        overlays = tuple(request.config.getoption("--overlay"))
        with running_embedded(data, release, caches, overlays) as started:
            yield started


@pytest.fixture(scope="session")
def stack(running: Running) -> Endpoints:
    """One stack for the whole run, the same endpoints whatever runs it."""
    return running.endpoints


@pytest.fixture(scope="session")
def cassandra(stack: Endpoints) -> Iterator[Session]:
    """A driver session at the stack, with rights to create and drop."""
    with session_at(stack.cassandra_host, stack.cassandra_port) as made:
        yield made


@pytest.fixture(scope="session")
def mail_keyspace(running: Running, cassandra: Session) -> str:
    """The stack's own keyspace with James's tables, shared by the run: mailboxes are not."""
    keyspace = running.endpoints.keyspace
    make_mail_tables(running, cassandra, keyspace)
    return keyspace


@pytest.fixture
def fresh_keyspace(running: Running, cassandra: Session) -> Iterator[str]:
    """A keyspace of its own with James's tables, change capture on; dropped after the test.

    Takes about 10 s, and the agent some more to notice: where `mail_keyspace` does, take that.
    """
    keyspace = f"mail_{uuid.uuid4().hex[:12]}"
    make_mail_tables(running, cassandra, keyspace)
    yield keyspace
    cassandra.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")


def make_mail_tables(running: Running, session: Session, keyspace: str) -> None:
    """James's tables, in sight of the agents, with copies as of `copies_of`."""
    create_keyspace(session, keyspace, copies_of(session))
    for statement in james.captured_statements(keyspace):
        session.execute(statement)
    running.show_new_tables()
