"""A second broker beside that of a stack: a partition may lose a replica, and take no writes."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from kafka import TopicPartition
from kafka.admin import ConfigResource, KafkaAdminClient
from kafka.errors import KafkaError

from deploy.embedded import Stack
from deploy.embedded.broker import Broker
from deploy.embedded.ports import free_ports, is_open
from deploy.embedded.spec import Layout
from tests.stack.streams import until

FIRST, SECOND = 1, 2
"""Kafka's numbers of the brokers."""


class SecondBroker(Broker):
    """A broker of a stack's Kafka that is no controller. It ends with `kill` or `stop`."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        layout = Layout(folder)
        layout.make()
        ports = replace(stack.spec.ports, broker=next(free_ports()))
        super().__init__(layout, replace(stack.spec, ports=ports))
        self._first, self._port, self._folder = stack, ports.broker, layout.kafka

    def launch(self) -> None:
        """Start it on its data and wait until it takes connections."""
        properties = self._folder / "server.properties"
        first = self._first.layout.kafka
        text = (first / "server.properties").read_text(encoding="utf-8")
        at = f"PLAINTEXT://127.0.0.1:{self._port}"
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
        until("the second broker answers", partial(is_open, self._port))


def replicate(stack: Stack, partition: int) -> None:
    """Let a partition of the agent's topic live on both brokers, and take writes on both only.

    The other partitions, with one replica, need no more than that.
    """
    topic = stack.topic_prefix
    admin = KafkaAdminClient(bootstrap_servers=stack.bootstrap_servers)
    try:
        until("both brokers are there", lambda: len(admin.describe_cluster()["brokers"]) == 2)
        both = {TopicPartition(topic, partition): [FIRST, SECOND]}
        assert set(admin.alter_partition_reassignments(both).values()) == {None}
        until("both have its records", lambda: len(_in_sync(admin, topic, partition)) == 2)
        admin.alter_configs([ConfigResource("TOPIC", topic, {"min.insync.replicas": "2"})])
    finally:
        admin.close()


def in_sync(stack: Stack, partition: int) -> set[int]:
    """The brokers that have all of a partition of the agent's topic; none where that is unknown."""
    admin = KafkaAdminClient(bootstrap_servers=stack.bootstrap_servers)
    try:
        return _in_sync(admin, stack.topic_prefix, partition)
    except KafkaError:
        return set()  # the broker that is away was asked
    finally:
        admin.close()


def _in_sync(admin: KafkaAdminClient, topic: str, partition: int) -> set[int]:
    (described,) = admin.describe_topics([topic])
    return {
        broker
        for each in described["partitions"]
        if each["partition_index"] == partition
        for broker in each["isr_nodes"]
    }
