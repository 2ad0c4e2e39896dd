"""The containers themselves, where Docker is."""

import json
import time
import uuid
from pathlib import Path

import pytest
from cassandra.cluster import Cluster
from kafka import KafkaConsumer

from tests.containers.stack import missing_docker, running_containers

pytestmark = [pytest.mark.containers, pytest.mark.long, pytest.mark.timeout(1500)]


def test_a_write_becomes_an_event(tmp_path: Path) -> None:
    if reason := missing_docker():
        pytest.skip(reason)
    with running_containers(tmp_path) as stack:
        mailbox = uuid.uuid1()
        cluster = Cluster([stack.cassandra_host], port=stack.cassandra_port)
        try:
            cluster.connect(stack.keyspace).execute(
                "INSERT INTO messagedeleted (mailboxid, uid) VALUES (%s, 7)", (mailbox,)
            )
        finally:
            cluster.shutdown()
        topic = f"{stack.topic_prefix}.{stack.keyspace}.messagedeleted"
        assert str(mailbox) in mailboxes(stack.bootstrap_servers, topic)


def mailboxes(servers: str, topic: str) -> set[str]:
    """The mailboxes named by the first records that come within a minute."""
    consumer = KafkaConsumer(topic, bootstrap_servers=servers, auto_offset_reset="earliest")
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            polled = consumer.poll(timeout_ms=1000)
            found = {json.loads(r.key)["mailboxid"] for batch in polled.values() for r in batch}
            if found:
                return found
        return set()
    finally:
        consumer.close()
