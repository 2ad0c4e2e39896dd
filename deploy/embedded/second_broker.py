"""A second broker beside that of a stack: leaders can move, partitions can lose a copy."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from deploy.embedded import Stack, kafka_clients
from deploy.embedded.broker import Broker
from deploy.embedded.layout import Layout
from deploy.embedded.ports import free_ports, is_open
from deploy.embedded.wait import HANG_S, until

FIRST, SECOND = 1, 2
"""Kafka's numbers of the brokers. Only the first is a controller."""
PREFERRED = 0
"""Kafka's number for an election that the first broker of a partition's list wins."""


class SecondBroker(Broker):
    """A broker of a stack's Kafka that is no controller. It ends with `kill` or `stop`."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        layout = Layout(folder)
        layout.make()
        ports = replace(stack.spec.ports, broker=next(free_ports()))
        super().__init__(layout, replace(stack.spec, ports=ports))
        self.port = ports.broker
        self._first, self._folder = stack, layout.kafka

    def launch(self) -> None:
        """Start it on its data and wait until it takes connections. Raises EmbeddedError."""
        properties = self._folder / "server.properties"
        first = self._first.layout.kafka
        text = (first / "server.properties").read_text(encoding="utf-8")
        at = f"PLAINTEXT://127.0.0.1:{self.port}"
        own = {
            "process.roles": "broker",
            "node.id": str(SECOND),
            "listeners": at,
            "advertised.listeners": at,
            "log.dirs": str(self._folder / "data"),
        }
        for name, value in own.items():
            text = re.sub(rf"(?m)^{re.escape(name)}=.*$", f"{name}={value}", text)
        properties.write_text(text, encoding="utf-8")
        if not (self._folder / "data").exists():
            meta = (first / "data" / "meta.properties").read_text(encoding="utf-8")
            (cluster,) = re.findall(r"(?m)^cluster\.id=(.+)$", meta)
            self._format(str(properties), cluster)
        self.daemon.start([*self._java(), "kafka.Kafka", str(properties)], cwd=self._folder)
        until(partial(is_open, self.port), HANG_S, "the second broker answers")


def partitions_of(stack: Stack) -> list[TopicPartition]:
    """Every partition of every topic. Raises KafkaError."""
    with _admin(stack) as admin:
        return list(_described(admin))


def keep_at(stack: Stack, partitions: Iterable[TopicPartition], brokers: Sequence[int]) -> None:
    """Have these brokers keep partitions, and the first of them lead; return when it is so.

    Raises KafkaError, and StartError where it never is so.
    """
    wanted = {each: list(brokers) for each in partitions}
    with _admin(stack) as admin:
        until(lambda: _are_there(admin), HANG_S, "both brokers are there")
        for refused in filter(None, admin.alter_partition_reassignments(wanted).values()):
            raise refused
        until(lambda: _are_at(admin, wanted), HANG_S, "both brokers have all records")
        by_topic: dict[str, list[int]] = {}
        for each in wanted:
            by_topic.setdefault(each.topic, []).append(each.partition)
        admin.elect_leaders(PREFERRED, by_topic)
        await_leader(stack, wanted, brokers[0])


def await_leader(stack: Stack, partitions: Iterable[TopicPartition], broker: int) -> None:
    """Return when one broker leads partitions. Raises StartError."""
    wanted = set(partitions)

    def leads() -> bool:
        described = _described_if_answered(stack)
        return all(each in described and described[each]["leader_id"] == broker for each in wanted)

    until(leads, HANG_S, f"broker {broker} leads")


def in_sync(stack: Stack, partition: TopicPartition) -> set[int]:
    """The brokers that have all records of a partition; none where that is unknown."""
    described = _described_if_answered(stack)
    return set(described[partition]["isr_nodes"]) if partition in described else set()


@contextmanager
def _admin(stack: Stack) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(**kafka_clients.options(stack.spec))
    try:
        yield admin
    finally:
        admin.close()


def _are_there(admin: KafkaAdminClient) -> bool:
    return len(admin.describe_cluster()["brokers"]) == len((FIRST, SECOND))


def _described(admin: KafkaAdminClient) -> dict[TopicPartition, Any]:
    """What Kafka says of each partition: its leader, replicas, and those in sync."""
    return {
        TopicPartition(topic["name"], each["partition_index"]): each
        for topic in admin.describe_topics()
        for each in topic["partitions"]
    }


def _described_if_answered(stack: Stack) -> dict[TopicPartition, Any]:
    """The same; nothing if a broker was asked that is away."""
    try:
        with _admin(stack) as admin:
            return _described(admin)
    except KafkaError:
        return {}


def _are_at(admin: KafkaAdminClient, wanted: Mapping[TopicPartition, Sequence[int]]) -> bool:
    described = _described(admin)
    return all(
        described[each]["replica_nodes"] == brokers
        and set(described[each]["isr_nodes"]) == set(brokers)
        for each, brokers in wanted.items()
    )
