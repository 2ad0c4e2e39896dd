"""What ``reconcile doctor`` says of the space that memory takes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from streaming.commands.doctor.checks import space
from streaming.commands.doctor.checks.check import Level
from tests.fakes.checked_cluster import FakeCluster, levels, looked


@dataclass
class Sized(FakeCluster):
    """With so many messages."""

    messages: int = 2**20

    def estimated_partitions(self, keyspace: str, table: str) -> int:
        self._refuse()
        return self.messages

    def disk_usage(self, keyspace: str) -> dict[str, float]:
        return {"10.0.0.1": 90_000.0, "10.0.0.2": 70_000.0, "10.0.0.3": 80_000.0}


ON_TWO = {"reconciler": {"class": "SimpleStrategy", "replication_factor": "2"}}


def test_what_memory_takes_is_told_beside_what_there_is() -> None:
    (told,) = looked(space.memory_space, Sized())
    assert told.level is Level.OK
    assert "lineage of some 1,048,576 messages takes some 115 MiB on each node's disk" in told.what
    assert "takes 70,000 MiB or more" in told.what


def test_where_not_every_node_has_a_copy_it_takes_less() -> None:
    (told,) = looked(space.memory_space, Sized(replicated=ON_TWO, messages=3 * 2**20))
    assert "some 230 MiB" in told.what


@pytest.mark.parametrize(
    ("messages", "level"), [(63_000_000, Level.OK), (70_000_000, Level.WARNING)]
)
def test_what_is_much_beside_the_mail_is_a_warning(messages: int, level: Level) -> None:
    assert levels(looked(space.memory_space, Sized(messages=messages))) == {level}


def test_before_cassandra_has_counted_nothing_is_claimed() -> None:
    (told,) = looked(space.memory_space, Sized(messages=0))
    assert told.level is Level.OK
    assert "no rows" in told.what


def test_what_may_not_be_asked_is_a_warning() -> None:
    (told,) = looked(space.memory_space, Sized(refuses="no SELECT"))
    assert told.level is Level.WARNING
    assert "system_views" in told.advice
