"""One stream that the scenario tests share: it repairs a mail keyspace of its own.

Each test has its own mailboxes. A module's tests plant all their rows first, in a fixture of the
module, and wait then: the delay passes once, not once a test.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from cassandra.cluster import Session

from deploy.embedded import ADMIN, Stack
from deploy.embedded.node import StackNode
from deploy.embedded.spec import CassandraRelease
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from tests.conftest import make_mail_tables
from tests.endpoints import Endpoints, Running
from tests.stack.embedded import wanted
from tests.stack.guarded import session_of
from tests.stack.pasts import a_scene_with_a_past
from tests.stack.reconnecting import reconnecting
from tests.stack.rounds import Ground, ground
from tests.stack.scenes import Scene, begin_at_the_end
from tests.stack.skewed import SKEWED
from tests.stack.streams import Stream, module, until, write_settings
from tests.stack.watched import Restarted, Watched, watched


@pytest.fixture(scope="session", autouse=True)
def every_spark_starts_quickly(quick_spark: None) -> None:
    """That of streams and of commands: they live for a minute or two."""


Changes = Mapping[str, Mapping[str, Any]]
Planted = TypeVar("Planted")


def _as_made(_session: Session, _keyspace: str) -> None:
    """James's tables as they are."""


@dataclass(frozen=True)
class Scenes:
    """Makes streams, each with a mail keyspace of its own, at the stack of this run."""

    running: Running
    session: Session
    folders: pytest.TempPathFactory

    def __call__(
        self,
        changes: Changes,
        stream_of: Callable[[Path], Stream] = Stream,
        prepared: Callable[[Session, str], None] = _as_made,
    ) -> Iterator[Scene]:
        """One with these settings, beside the defaults of tests, until the fixture's end.

        Its keyspace is ``prepared`` before it starts.
        """
        stack, name = self.running.endpoints, uuid.uuid4().hex[:8]
        keyspace, own = f"scene_{name}", f"scene_{name}_own"
        make_mail_tables(self.running, self.session, keyspace)
        prepared(self.session, keyspace)
        file = self.folders.mktemp("scene") / "reconcile.toml"
        config = write_settings(file, stack, keyspace, own, changes)
        begin_at_the_end(self.session, config)
        with stream_of(config) as stream:
            stream.wait_until_watching()
            yield Scene(self.session, stack, keyspace, own, stream)
            assert stream.stop() == 0
        for each in (keyspace, own):
            self.session.execute(f"DROP KEYSPACE IF EXISTS {each}")

    def over(self, plant: Callable[[Scene], Planted], changes: Changes) -> Iterator[Planted]:
        """What was planted before a stream began, see `a_scene_with_a_past`."""
        made: list[Planted] = []
        at = (self.running, self.session, self.folders.mktemp("past"))
        for _ in a_scene_with_a_past(*at, changes, lambda scene: made.append(plant(scene))):
            yield made[0]


@pytest.fixture(scope="session")
def scenes(
    running: Running, cassandra: Session, tmp_path_factory: pytest.TempPathFactory
) -> Scenes:
    """At the stack of this run; ``over`` needs `mail_keyspace`, too."""
    return Scenes(running, cassandra, tmp_path_factory)


@pytest.fixture(scope="package")
def scene(scenes: Scenes) -> Iterator[Scene]:
    """A stream in repair mode with the default limits, watching a keyspace without mail yet.

    What it reported is not looked at again by itself, so that metrics count the tests' keys only.
    """
    yield from scenes({"repair": {"recheck_interval": 600}})


@pytest.fixture(scope="module")
def indexed_scene(scenes: Scenes) -> Iterator[Scene]:
    """Another stream, which keeps the index tables too."""
    yield from scenes({"repair": {"projections": [each.name for each in MESSAGE_PROJECTIONS]}})


@pytest.fixture(scope="module")
def counted_scene(scenes: Scenes) -> Iterator[Scene]:
    """Another stream, which keeps counters and quotas too."""
    yield from scenes({"stream": {"delay": LATEST}, "tally": TALLIES})


LATEST = 5
"""L, and D, which is no shorter: a look is void where batches take longer on a busy machine."""
TALLIES: Mapping[str, Any] = {
    "projections": ["mailbox_counters", "current_quota"],
    "window": 5,
    "max_update_lag": LATEST,
    "max_quota_lag": LATEST,
    "after_outage": 1,
    "correction_max_messages": 500,
    "corrections_per_minute": 1000,
    "correction_share": 1.0,
}
"""The section [tally] of a stream whose delay is as long.

Events of one moment may come out in two windows of the stream's. Its own is longer, so that one
look is made after both, and the second is no change that is under way.
"""


@pytest.fixture(scope="module")
def skewed_scene(
    scenes: Scenes, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Scene, Path]]:
    """A stream that takes its nodes' clocks for a minute ahead, and the file that makes it so.

    They are right until its memory of rows has begun: no canary is written while they are not, and
    without memory a row that only the listing has is reported, not held.
    """
    ahead = tmp_path_factory.mktemp("skew") / "ahead"
    environment = {SKEWED: str(ahead)}

    def stream_of(config: Path) -> Stream:
        return Stream(config, environment=environment, program=module("tests.stack.skewed"))

    for made in scenes({}, stream_of):
        until("its memory of rows has begun", made.lineage.watching)
        ahead.touch()
        yield made, ahead


@pytest.fixture(scope="module")
def patient_scene(scenes: Scenes) -> Iterator[Scene]:
    """Another stream; what it holds is looked at again so late that a test can look before.

    Its batches start more often than its windows close.
    """
    yield from scenes({"repair": {"recheck_interval": 30}, "stream": {"trigger": 0.5}})


@pytest.fixture(scope="module")
def own_stack(
    request: pytest.FixtureRequest,
    release: CassandraRelease,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """A stack of the module's own, whose servers it may stop, and add others to.

    It has a node, or as many as the module's ``DATA_CENTRES`` says of each.
    """
    nodes = getattr(request.module, "DATA_CENTRES", None)
    more = wanted(release=release, data_centres=nodes)
    with Stack(tmp_path_factory.mktemp("own"), more) as started:
        yield started


@pytest.fixture(scope="module")
def own_running(own_stack: Stack) -> Running:
    """The same, as most helpers take it."""
    return Running(Endpoints.of(own_stack.describe()), own_stack.capture_tables)


@pytest.fixture(scope="module")
def own_session(own_stack: Stack) -> Iterator[Session]:
    """A driver session there, which connects again."""
    with reconnecting(own_stack) as made:
        yield made


@pytest.fixture(scope="module")
def own_scenes(
    own_running: Running, own_session: Session, tmp_path_factory: pytest.TempPathFactory
) -> Scenes:
    """Makes streams there."""
    return Scenes(own_running, own_session, tmp_path_factory)


@pytest.fixture(scope="module")
def node(own_stack: Stack) -> StackNode:
    """A second node there, which is not started yet."""
    return own_stack.add_node()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of the module's own that checks passwords and rights, with an audit log."""
    with Stack(tmp_path_factory.mktemp("guarded"), wanted(admin=ADMIN)) as started:
        yield started


@pytest.fixture(scope="module")
def admin(guarded: Stack) -> Iterator[Session]:
    """A driver session there, under Cassandra's own admin."""
    with session_of(guarded, ADMIN.username, ADMIN.password) as session:
        yield session


@pytest.fixture(scope="module")
def place(stack: Endpoints, cassandra: Session) -> Iterator[Watched]:
    """A mail keyspace of the module's own, for streams that are killed and started again."""
    with watched(stack, cassandra) as made:
        yield made


@pytest.fixture(scope="module")
def here(
    stack: Endpoints, cassandra: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    """The ground of the module's rounds."""
    with ground(stack, cassandra, tmp_path_factory.mktemp("rounds")) as made:
        yield made


@pytest.fixture
def restarted(place: Watched, tmp_path: Path) -> Iterator[Restarted]:
    """A stream of the test's own there."""
    made = place.stream(tmp_path)
    yield made
    made.forget()
