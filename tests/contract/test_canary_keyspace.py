"""Canaries at a real Cassandra whose admin changes how their keyspace is replicated."""

import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pytest
from cassandra.cluster import Session

from checkpoints.clock import now_micros
from deploy.mailserver.james import create_schema
from reconcilers.words.errors import Refused
from reconcilers.words.model import Micros
from streaming.canary.clock import MeasuredClock
from streaming.canary.writer import CanaryWriter
from streaming.monitoring.clocks import ClockWatch
from streaming.tables import Canaries, Nodes, canary_schema


@dataclass
class OffClock:
    """One that is so far ahead (µs), and was not measured."""

    ahead: Micros

    def now(self) -> Micros:
        return now_micros() + self.ahead

    def steady(self) -> float:
        return time.monotonic()

    def trouble(self) -> None:
        return None


class Plan:
    """Two lanes, for as many partitions."""

    partitions = 2

    def of(self, _place: str, _used: Collection[int]) -> Sequence[int]:
        return (0, 3)


WATCHED = ("imapuidtable", "messageidtable")
THREE = "{'class': 'SimpleStrategy', 'replication_factor': 3}"
BY_DATA_CENTRE = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 3}"
HERE = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}"


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
    clock = MeasuredClock(ClockWatch(Nodes(session), 45.0))
    assert clock.trouble() is None
    writer = CanaryWriter(canaries, Plan(), clock)
    writer.begin()
    writer.write()
    written, watched = canaries.newest(), canaries.watched()
    assert (watched is None, list(written.values()) == [{}]) == (False, False)
    session.execute(f"ALTER KEYSPACE {canaries.ring._keyspace} WITH replication = {replication}")
    with pytest.raises(Refused, match="its canaries prove nothing"):
        writer.write()
    assert (canaries.watched(), canaries.marks()) == (None, None)
    session.execute(canary_schema.one_copy(canaries.ring._keyspace))
    writer.write()
    assert canaries.newest() != written
    assert canaries.watched() == watched


def test_a_canary_is_dated_by_the_node_that_takes_it_and_numbered_by_the_one_before(
    session: Session, canaries: Canaries
) -> None:
    """Whatever the clock of whoever writes it says."""
    year = 365 * 86_400 * 1_000_000
    clock = OffClock(year)
    for _ in range(2):
        writer = CanaryWriter(canaries, Plan(), clock)
        writer.begin()
        writer.write()
        clock.ahead -= 3 * year
    (lanes,) = canaries.newest().values()
    assert lanes.keys() == {0, 3}
    newest = lanes[3]
    assert newest.number - now_micros() == pytest.approx(year, abs=60_000_000)
    assert newest.at == pytest.approx(now_micros(), abs=60_000_000)
    (told,) = session.execute(
        f"SELECT previous, WRITETIME(number) AS at FROM {canaries.ring._keyspace}.canary LIMIT 1"
    )
    assert (told["previous"], told["at"]) == (newest.number - 1, newest.number)


def test_one_copy_may_be_named_by_the_only_data_centre(
    session: Session, canaries: Canaries
) -> None:
    session.execute(f"ALTER KEYSPACE {canaries.ring._keyspace} WITH replication = {HERE}")
    canaries.check()
    assert canaries.watched() is not None
