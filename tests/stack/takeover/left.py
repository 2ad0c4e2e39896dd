"""The frozen rows and records, moved to a test's own keyspaces and to today, and put back."""

import json
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from cassandra.cluster import Session
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from checkpoints.schema.step import statements
from tests.endpoints import Endpoints
from tests.stack.scenes import Place

HERE = Path(__file__).parent
MAIL, OWN = "mail_frozen", "reconciler_frozen"
DAY_US = 86_400_000_000
LEASE_LEFT = 5
"""Seconds that the lease of the killed stream still lasts."""


@dataclass(frozen=True)
class LeftBehind:
    """What the first version left, as if it had run in these keyspaces, within the last day.

    ``said`` is what it answered. ``read``, ``unread`` and ``suspected`` are messages by what became
    of their events; ``dead_letter`` is the record that its one dead letter stands for.
    """

    keyspace: str
    own: str
    said: dict[str, Any]
    read: tuple[Place, ...]
    unread: tuple[Place, ...]
    suspected: tuple[Place, ...]
    dead_letter: tuple[str, int, int]
    tables: dict[str, list[dict[str, Any]]]
    topics: dict[str, dict[str, Any]]

    def put_rows(self, session: Session) -> None:
        """The keyspace and its tables, as that commit's schema.cql makes them, and all rows."""
        cql = (HERE / "schema.cql").read_text(encoding="utf-8").replace("$keyspace", self.own)
        options = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        for statement in statements(cql.replace("$replication", options), self.own):
            session.execute(statement, timeout=60)
        for table, rows in self.tables.items():
            for row in rows:
                self._put(session, table, row)

    def _put(self, session: Session, table: str, row: dict[str, Any]) -> None:
        kept = LEASE_LEFT if table == "lease" else row.get("ttl")
        using = [f"TIMESTAMP {row['written']}"] if "written" in row else []
        using += [f"TTL {kept}"] if kept else []
        session.execute(
            f"INSERT INTO {self.own}.{table} JSON %s DEFAULT UNSET"
            + (f" USING {' AND '.join(using)}" if using else ""),
            (json.dumps(row["row"]),),
        )

    def put_records(self, stack: Endpoints) -> None:
        """The topics, each record at its place."""
        admin = KafkaAdminClient(bootstrap_servers=stack.bootstrap_servers)
        producer = KafkaProducer(bootstrap_servers=stack.bootstrap_servers, acks="all")
        try:
            admin.create_topics(
                [NewTopic(name, topic["partitions"], 1) for name, topic in self.topics.items()]
            )
            for name, topic in self.topics.items():
                for partition, offset, key, value in topic["records"]:
                    sent = producer.send(
                        name, key=_bytes(key), value=_bytes(value), partition=partition
                    )
                    assert sent.get(timeout=60).offset == offset
        finally:
            producer.close()
            admin.close()

    def place_of_the_dead_letter(self) -> Place:
        """The message whose event the dead letter stands for."""
        topic, *place = self.dead_letter
        (key,) = (key for *at, key, _ in self.topics[topic]["records"] if at == place)
        ids = json.loads(key)
        return Place(UUID(ids["messageid"]), UUID(ids["mailboxid"]), ids["uid"])


def left_behind(keyspace: str, own: str, now: int) -> LeftBehind:
    """For these keyspaces, at this time (µs)."""
    text = (HERE / "left_behind.json").read_text(encoding="utf-8")
    frozen = json.loads(text.replace(MAIL, keyspace).replace(OWN, own))
    days = (now - frozen["frozen_at"]) // DAY_US
    moved = _moved(frozen, days)
    places = {name: tuple(map(_place, each)) for name, each in frozen["places"].items()}
    topic, partition, offset = frozen["dead_letter"]
    return LeftBehind(
        keyspace=keyspace,
        own=own,
        said=moved["said"],
        dead_letter=(topic, partition, offset),
        tables=moved["tables"],
        topics=moved["topics"],
        **places,
    )


def _place(ids: list[Any]) -> Place:
    messageid, mailboxid, uid = ids
    return Place(UUID(messageid), UUID(mailboxid), uid)


def _moved(value: Any, days: int, name: str = "") -> Any:
    """All times later by so many days, in JSON within text too."""
    moved = partial(_moved, days=days)
    match value:
        case int() if not isinstance(value, bool):
            value += days * _a_day(value, name)
        case str() if name == "day":
            value = str(date.fromisoformat(value) + timedelta(days=days))
        case str() if value.startswith(("{", "[")):
            value = json.dumps(moved(json.loads(value)), separators=(",", ":"))
        case dict():
            value = {key: moved(each, name=key) for key, each in value.items()}
        case list():
            value = [moved(each) for each in value]
    return value


def _a_day(number: int, name: str) -> int:
    """A day in the unit of this number: hours, ms or µs since the epoch; 0 when it is no time."""
    if name == "hour":
        return 24
    return {13: DAY_US // 1000, 16: DAY_US}.get(len(str(number)), 0)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
