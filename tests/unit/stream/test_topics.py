"""Topics of our own: made before they are used, at a broker that tells of them later."""

from collections.abc import Callable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import TopicAlreadyExistsError
from kafka.structs import TopicPartition

from reconcilers.words.errors import Unreachable
from streaming.settings import KafkaSettings
from streaming.topics import Watcher, watcher


class Broker:
    """Tells of what it made only when asked for the ``slow``-th time after that."""

    def __init__(self, slow: float, others: Sequence[str] = (), brokers: int = 1) -> None:
        self.slow = slow
        self.brokers = [{"broker_id": each, "is_fenced": False} for each in range(brokers)]
        self.copies: set[tuple[int, str | None]] = set()
        self.partitions: dict[str, int] = {}
        self.made: dict[str, float] = {}
        self.others = set(others)
        self.asked = 0

    def create_topics(self, made: Sequence[Any]) -> None:
        names = {each.name for each in made}
        for each in made:
            least = each.topic_configs.get("min.insync.replicas")
            self.copies.add((each.replication_factor, least))
            self.partitions[each.name] = each.num_partitions
        self.made |= dict.fromkeys(names, self.asked + self.slow)
        if names & self.others:
            raise TopicAlreadyExistsError

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": self.brokers}

    def topics(self) -> set[str]:
        self.asked += 1
        return {name for name, told in self.made.items() if self.asked >= told}


def watching(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Watcher:
    monkeypatch.setattr(watcher, "KafkaAdminClient", lambda **_: broker)
    monkeypatch.setattr(watcher, "KafkaConsumer", lambda **_: broker)
    ticks = count()
    clock = SimpleNamespace(monotonic=lambda: float(next(ticks)), sleep=lambda _: None)
    monkeypatch.setattr(watcher, "time", clock)
    return Watcher(KafkaSettings())


@pytest.mark.parametrize("slow", [0, 1, 5])
def test_a_topic_exists_for_us_when_the_broker_tells_of_it(
    slow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = watching(Broker(slow), monkeypatch)
    kafka.create(["own.suspects", "own.dead-letters"])
    assert kafka.missing(["own.suspects", "own.dead-letters"]) == []


def test_the_agents_topic_has_the_chosen_number_of_partitions_and_ours_the_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = Broker(0)
    watching(broker, monkeypatch).create(["james", "own.suspects"])
    assert broker.partitions == {"james": KafkaSettings().partitions, "own.suspects": -1}


@pytest.mark.parametrize(
    ("brokers", "away", "copies"),
    [
        (1, 0, (-1, None)),
        (2, 0, (-1, None)),
        (3, 0, (3, "2")),
        (5, 0, (3, "2")),
        (3, 1, (-1, None)),
    ],
)
def test_a_topic_has_three_copies_if_there_are_brokers_for_them(
    brokers: int, away: int, copies: tuple[int, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(0, brokers=brokers)
    for each in broker.brokers[:away]:
        each["is_fenced"] = True
    watching(broker, monkeypatch).create(["own.suspects"])
    assert broker.copies == {copies}


def test_a_topic_that_another_process_makes_at_the_same_time_is_waited_for_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka = watching(Broker(3, others=["own.suspects"]), monkeypatch)
    kafka.create(["own.suspects"])
    assert kafka.missing(["own.suspects"]) == []


def test_a_topic_that_the_broker_never_tells_of_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = watching(Broker(float("inf")), monkeypatch)
    with pytest.raises(Unreachable, match=r"own\.suspects"):
        kafka.create(["own.suspects"])


class OnePartition(Broker):
    """Each of its topics has one partition."""

    def partitions_for_topic(self, _topic: str) -> set[int]:
        return {0}

    def assign(self, _partitions: Sequence[TopicPartition]) -> None:
        pass


class Leaderless(OnePartition):
    """Has topics; of one nobody knows the leader, as while its broker is away."""

    def resume(self, *_partitions: TopicPartition) -> None:
        pass

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """As kafka-python does it (3.0.12): what it was not told is missing."""
        told: dict[TopicPartition, int] = {}
        return {each: told[each] for each in partitions}

    end_offsets = beginning_offsets


ASKED: dict[str, Callable[[Watcher], object]] = {
    "ends": lambda kafka: kafka.end_offsets(["james"]),
    "beginnings": lambda kafka: kafka.beginning_offsets(["james"]),
    "ages": lambda kafka: kafka.written_at({("james", 0): 5}),
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_partition_without_a_leader_cannot_be_reached(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = watching(Leaderless(0), monkeypatch)
    with pytest.raises(Unreachable, match="james"):
        ASKED[asked](kafka)


class Retained(OnePartition):
    """A topic whose records before 20 are dropped; it ends at 100, with ten offsets of markers."""

    at = 0

    def topics(self) -> set[str]:
        return {"james.imapuidtable"}

    def beginning_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 20)

    def end_offsets(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 100)

    def seek(self, _place: TopicPartition, at: int) -> None:
        self.at = at

    def position(self, _place: TopicPartition) -> int:
        """As ``auto_offset_reset`` has it: what is dropped is passed over, to the end."""
        return self.at if self.at >= 20 else 100

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        assert timeout_ms
        at, self.at = self.at, min(self.at + 10, 100)
        found = [SimpleNamespace(offset=at, key=b"", value=b"{}")] if at < 90 else []
        return {TopicPartition("james.imapuidtable", 0): found}


HELD = [(0, True), (19, True), (20, True), (50, True), (90, False), (100, False)]
OF_A_TOPIC_THAT_HAS_DROPPED_ALL = [(5, 20, True), (20, 20, False)]


@pytest.mark.parametrize(
    ("settled", "end", "held"),
    [*((at, 100, held) for at, held in HELD), *OF_A_TOPIC_THAT_HAS_DROPPED_ALL],
)
def test_what_kafka_has_dropped_unread_may_have_been_a_record(
    settled: int, end: int, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = watching(Retained(0), monkeypatch)
    assert kafka.holds_records(("james.imapuidtable", 0), settled, end) is held
