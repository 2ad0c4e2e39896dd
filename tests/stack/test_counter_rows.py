"""Counters or rows, on a real Cassandra: every way is exact, and what is planted is found."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra.cluster import Session

from deploy.embedded.spec import CassandraRelease
from deploy.mailserver.faults import FaultKind
from tests.bench.counter_rows import race
from tests.bench.counter_rows.book import Verdict
from tests.bench.counter_rows.disturbed import Disturbed, planted_in, run_all, share_done
from tests.bench.counter_rows.node import lone_node, new_keyspace
from tests.bench.counter_rows.race import Load, measure
from tests.bench.counter_rows.stream import StreamTable
from tests.bench.counter_rows.tables import Counting, DeduplicatedTable, SubrowTable
from tests.bench.counter_rows.ways import DISTURBED, RACING
from tests.bench.counter_rows.wire import Place
from tests.bench.counter_rows.workload import MARKS, Shape
from tests.stack.streams import until

pytestmark = pytest.mark.stack

N = 6
"""Faults of a kind."""
EXACT, LOST, DOUBLED = (0, 0), (N, 0), (0, N)
MADE = {
    FaultKind.APPLIED_BUT_TIMED_OUT: (EXACT, DOUBLED, DOUBLED, EXACT, EXACT, EXACT),
    FaultKind.LOST_BUT_TIMED_OUT: (LOST, EXACT, EXACT, EXACT, EXACT, EXACT),
    FaultKind.DIED_BETWEEN_WRITES: (LOST, LOST, LOST, LOST, EXACT, LOST),
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
    monkeypatch: pytest.MonkeyPatch,
    way: type[Counting],
    shape: Shape,
) -> None:
    monkeypatch.setattr(race, "READS", 10)
    counting = way(Place.at(cassandra, keyspace))
    counting.create()
    run = measure(counting, Load(shape, 4), 0, 0.3, lambda: 0.0)
    assert run.wrong == 0
    assert run.changes >= 4
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
        for way in (DeduplicatedTable, StreamTable, SubrowTable):
            assert found[way.name] == Verdict(10 * MARKS, 0, 0)
        assert [each.missing_in_truth() for each in runs] == [0] * len(runs)
