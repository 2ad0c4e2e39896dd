"""What the benchmarks share: a keyspace with a backlog of changes already captured."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cassandra.cluster import Session

from deploy.mailserver.filler import fill
from tests.bench.backlog import CHANGES, MAILBOXES, bench_settings, records, wait_until_captured
from tests.conftest import make_mail_tables
from tests.endpoints import Endpoints, Running
from tests.stack.conftest import TALLIES, Scenes
from tests.stack.scenes import Scene, begin_at_the_end

TIMES = {"delay": 3, "window": 1}


@pytest.fixture(scope="module")
def counted_scene(
    running: Running, cassandra: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """A stream that keeps counters and quotas, as quickly as a quiet machine lets it."""
    scenes = Scenes(running, cassandra, tmp_path_factory)
    yield from scenes({"tally": {**TALLIES, "max_update_lag": 2}})


CACHES = ("file_cache_size", "key_cache_size")


def caches_of(session: Session) -> str:
    """How large Cassandra says that its caches are."""
    query = "SELECT value FROM system_views.settings WHERE name = %s"
    told = {name: session.execute(query, [name]).one() for name in CACHES}
    return ", ".join(f"`{name}` {row.value if row else 'unknown'}" for name, row in told.items())


@dataclass(frozen=True)
class Filled:
    """Consistent messages, all captured. ``captured_in``: seconds from the first write on."""

    stack: Endpoints
    keyspace: str
    own: str
    config: Path
    captured_in: float


@pytest.fixture(scope="package")
def filled(
    running: Running, cassandra: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Filled]:
    name = uuid.uuid4().hex[:8]
    keyspace, own, stack = f"bench_{name}", f"bench_{name}_own", running.endpoints
    make_mail_tables(running, cassandra, keyspace)
    config = bench_settings(
        tmp_path_factory.mktemp("bench"), stack, keyspace, own, {"stream": TIMES}
    )
    begin_at_the_end(cassandra, config)
    before = records(config)
    fill(cassandra, keyspace, CHANGES, MAILBOXES)
    took = wait_until_captured(config, before, CHANGES)
    yield Filled(stack, keyspace, own, config, took)
    for each in (keyspace, own):
        cassandra.execute(f"DROP KEYSPACE IF EXISTS {each}")
