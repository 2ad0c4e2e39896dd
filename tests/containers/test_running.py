"""The containers themselves, where Docker is."""

import uuid
from pathlib import Path

import pytest
from cassandra.cluster import Cluster

from tests.containers.stack import missing_docker, running_containers
from tests.events import comes

pytestmark = [pytest.mark.containers, pytest.mark.long(part="servers")]


def test_a_write_becomes_an_event(tmp_path: Path) -> None:
    if reason := missing_docker():
        pytest.skip(reason)
    with running_containers(tmp_path) as running:
        stack = running.endpoints
        mailbox = uuid.uuid1()
        cluster = Cluster([stack.cassandra_host], port=stack.cassandra_port)
        try:
            cluster.connect(stack.keyspace).execute(
                "INSERT INTO messagedeleted (mailboxid, uid) VALUES (%s, 7)", (mailbox,)
            )
        finally:
            cluster.shutdown()
        assert comes(
            stack.bootstrap_servers, stack.topic_prefix, {"mailboxid": str(mailbox), "uid": 7}
        )
