"""A running stack is known by the JSON object that `up` prints."""

import json
from pathlib import Path

import pytest

from tests.endpoints import Endpoints

STATUS = {
    "cassandra": {"host": "127.0.0.1", "port": 9042},
    "kafka": {"bootstrap_servers": "127.0.0.1:9092"},
    "agent": {"http": "http://127.0.0.1:8000"},
    "topic_prefix": "cdc",
    "keyspace": "james",
    "config": "/data/reconcile.toml",
}


def test_a_status_file_gives_the_endpoints(tmp_path: Path) -> None:
    file = tmp_path / "stack.json"
    file.write_text(json.dumps(STATUS), encoding="utf-8")
    assert Endpoints.from_file(file) == Endpoints(
        cassandra_host="127.0.0.1",
        cassandra_port=9042,
        bootstrap_servers="127.0.0.1:9092",
        agent_http="http://127.0.0.1:8000",
        topic_prefix="cdc",
        keyspace="james",
        config=Path("/data/reconcile.toml"),
    )


@pytest.mark.parametrize("part", sorted(STATUS))
def test_a_status_without_a_part_is_refused(part: str) -> None:
    with pytest.raises(KeyError):
        Endpoints.of({name: value for name, value in STATUS.items() if name != part})
