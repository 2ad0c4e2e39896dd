"""Where the servers of a test run are, whoever started them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Endpoints:
    """What a test may know of a running stack; `config` is a ready settings file."""

    cassandra_host: str
    cassandra_port: int
    bootstrap_servers: str
    agent_http: str
    topic_prefix: str
    keyspace: str
    config: Path

    @classmethod
    def of(cls, status: Mapping[str, Any]) -> "Endpoints":
        """From the JSON object that `python -m deploy.embedded up` prints.

        Raises KeyError where a part is missing.
        """
        return cls(
            cassandra_host=status["cassandra"]["host"],
            cassandra_port=int(status["cassandra"]["port"]),
            bootstrap_servers=status["kafka"]["bootstrap_servers"],
            agent_http=status["agent"]["http"],
            topic_prefix=status["topic_prefix"],
            keyspace=status["keyspace"],
            config=Path(status["config"]),
        )

    @classmethod
    def from_file(cls, path: Path) -> "Endpoints":
        """From a file that holds that object."""
        return cls.of(json.loads(path.read_text(encoding="utf-8")))


@dataclass(frozen=True)
class Running:
    """A stack that somebody started.

    `show_new_tables` makes the agent see tables younger than itself, whose events it drops until it
    is started again.
    """

    endpoints: Endpoints
    show_new_tables: Callable[[], None]
