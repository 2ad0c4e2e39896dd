"""Counters or rows, on a real Cassandra: every way is exact, and what is planted is found."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from cassandra.cluster import Session

from deploy.embedded.spec import CassandraRelease
from deploy.mailserver.faults import FaultKind, ProcessDiedError
from tests.bench.counter_rows.book import Verdict, verdict
from tests.bench.counter_rows.disturbed import Disturbed, planted_in, run_all, share_done
from tests.bench.counter_rows.node import lone_node, new_keyspace
from tests.bench.counter_rows.race import Load, measure
from tests.bench.counter_rows.stream import Maintainer, StreamTable, Topic
from tests.bench.counter_rows.tables import Counting, DeduplicatedTable, SubrowTable
from tests.bench.counter_rows.ways import DISTURBED, RACING, STREAMED
from tests.bench.counter_rows.wire import Place
from tests.bench.counter_rows.workload import MARKS, Shape, marked, new_mailboxes
from tests.stack.streams import until

pytestmark = pytest.mark.stack

N = 6
"""Faults of a kind."""
EXACT, LOST, DOUBLED = (0, 0), (N, 0), (0, N)
MADE = {
    FaultKind.APPLIED_BUT_TIMED_OUT: (EXACT, DOUBLED, DOUBLED, EXACT, EXACT, EXACT, EXACT),
    FaultKind.LOST_BUT_TIMED_OUT: (LOST, EXACT, EXACT, EXACT, EXACT, EXACT, EXACT),
    FaultKind.DIED_BETWEEN_WRITES: (LOST, LOST, LOST, LOST, EXACT, EXACT, LOST),
}
"""What each kind of fault does to each of `DISTURBED`: how many changes are lost, and doubled."""


@pytest.fixture(scope="module")
def keyspace(cassandra: Session) -> Iterator[str]:
    made = new_keyspace(cassandra)
    yield made
    cassandra.execute(f"DROP KEYSPACE {made}")


@pytest.mark.parametrize(
    "shape", [Shape("hot", 1), Shape("many", 20)], ids=lambda shape: shape.name
)
@pytest.mark.parametrize("way", RACING, ids=lambda way: way.name)
def test_without_faults_every_way_ends_exact(
    cassandra: Session,
    keyspace: str,
    way: type[Counting],
    shape: Shape,
) -> None:
    counting = way(Place.at(cassandra, keyspace))
    counting.create()
    run = measure(counting, Load(shape, 4, reads=5), 0, 0.3, lambda: 0.0)
    assert run.wrong == 0
    assert run.changes >= 4
    assert run.read_ms > 0
    assert run.operations["table writes"] > 0
    if "LWT" in run.name:
        assert run.operations["paxos writes"] > 1


@pytest.mark.parametrize("kind", MADE)
def test_each_kind_of_fault_loses_and_doubles_what_it_must(
    cassandra: Session, keyspace: str, kind: FaultKind
) -> None:
    runs = []
    for way in DISTURBED:
        faults = planted_in(kind, seed=1, count=N, changes=2 * MARKS)
        runs.append(Disturbed(way(Place.at(cassandra, keyspace, faults)), mailboxes=2, writers=1))
    run_all(runs)
    found = {each.counting.name: each.verdict() for each in runs}
    assert found == {
        way.name: Verdict(2 * MARKS, *made) for way, made in zip(DISTURBED, MADE[kind], strict=True)
    }
    assert [each.missing_in_truth() for each in runs] == [0] * len(runs)


def test_deltas_believe_their_events_and_counting_anew_does_not(
    cassandra: Session, keyspace: str
) -> None:
    for kind, believed in {FaultKind.NOT_SENT: LOST, FaultKind.DOUBLED: DOUBLED}.items():
        runs = [
            Disturbed(way(Place.at(cassandra, keyspace, faults)), mailboxes=2, writers=1)
            for way in STREAMED
            for faults in [planted_in(kind, seed=1, count=N, changes=MARKS)]
        ]
        run_all(runs)
        deltas, anew = (each.verdict() for each in runs)
        assert deltas == Verdict(2 * MARKS, *believed)
        assert anew == Verdict(2 * MARKS, 0, 0)


@dataclass
class HeldBack:
    """A session that remembers what was sent, to send it again."""

    session: Session
    sent: list[Any] = field(default_factory=list)

    def execute_async(self, statement: Any) -> Any:
        self.sent.append(statement)
        return self.session.execute_async(statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)


class Forgetful(Topic):
    """Whoever commits dies first, two times of three."""

    tried = 0

    def commit(self, position: int) -> None:
        self.tried += 1
        if self.tried % 3:
            raise ProcessDiedError(position)
        super().commit(position)


def test_the_stream_counts_nothing_twice_when_its_writer_dies_before_it_commits(
    cassandra: Session, keyspace: str
) -> None:
    counting, topic = StreamTable(Place.at(cassandra, keyspace)), Forgetful()
    counting.create()
    owners = new_mailboxes(2)
    writes = marked(1, owners)
    for part in (writes[:10], writes[10:20], writes[20:]):
        for each in part:
            topic.append(each)
        for _ in range(3):
            with suppress(ProcessDiedError):
                Maintainer(counting.place, topic).step()
        assert topic.committed == topic.end
    assert verdict(writes, counting.stored(owners)) == Verdict(2 * MARKS, 0, 0)


@pytest.mark.parametrize("way", [StreamTable, SubrowTable], ids=lambda way: way.name)
def test_a_write_that_arrives_late_changes_nothing(
    cassandra: Session, keyspace: str, way: type[Counting]
) -> None:
    held = HeldBack(cassandra)
    counting = way(Place.at(cast(Session, held), keyspace))
    counting.create()
    owners = new_mailboxes(1)
    writes = marked(1, owners)
    with counting.running():
        writer = counting.writer()
        for each in writes:
            writer.count(each)
    for late in held.sent[::-1]:
        cassandra.execute(late)
    assert verdict(writes, counting.stored(owners)) == Verdict(MARKS, 0, 0)


@pytest.mark.long(part="servers")
def test_what_can_be_written_again_outlives_a_restart(
    release: CassandraRelease, tmp_path: Path
) -> None:
    with lone_node(tmp_path, release) as node:
        place = Place.at(node.session, node.keyspace)
        runs = [Disturbed(way(place), mailboxes=10, writers=4) for way in DISTURBED]

        def restart() -> None:
            until("a third is done", lambda: share_done(runs) > 1 / 3)
            node.server.stop()
            assert share_done(runs) < 1
            node.start()

        run_all(runs, restart)
        found = {each.counting.name: each.verdict() for each in runs}
        for way in (DeduplicatedTable, *STREAMED, SubrowTable):
            assert found[way.name] == Verdict(10 * MARKS, 0, 0)
        assert [each.missing_in_truth() for each in runs] == [0] * len(runs)
