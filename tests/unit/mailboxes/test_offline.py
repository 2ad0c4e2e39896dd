"""Whether change capture shows that users write, before an offline fix."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from checkpoints.bookmarks import Offsets, Place
from reconcilers.capture.frontier import CANARY_TABLE
from reconcilers.words.errors import NotOffline, Unreachable
from streaming.commands.mailboxes import command
from streaming.commands.mailboxes.offline import MINUTE, Traffic
from streaming.settings import Settings
from streaming.topics import Record

SETTINGS = Settings()
NOW = 1_000 * MINUTE
TOPIC = SETTINGS.kafka.topic_prefix
ONE, TWO = "node-1", "node-2"


def event(keyspace: str, table: str, at: int, key: object = None) -> Record:
    source = {"keyspace": keyspace, "table": table, "ts_us": at}
    value = json.dumps({"source": source, "op": "i", "after": {}}).encode()
    return Record(TOPIC, 0, 0, json.dumps(key).encode(), value)


def canary(node: str, at: int = NOW - 1) -> Record:
    return event(SETTINGS.canary.keyspace, CANARY_TABLE, at, {"place": f"{node}/0", "lane": 1})


def users(at: int) -> Record:
    return event(SETTINGS.cassandra.keyspace, "imapuidtable", at)


@dataclass
class Topic:
    """Two partitions with these records of the last minute; ``asked`` is when they begin."""

    kept: list[Record]
    asked: list[int] = field(default_factory=list)

    def offsets_at(self, topics: Iterable[str], at: int) -> dict[Place, int]:
        assert list(topics) == [TOPIC]
        self.asked.append(at)
        return {(TOPIC, 0): 5, (TOPIC, 1): 9}

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        return {TOPIC: {0: 5 + len(self.kept), 1: 9}}

    def records(self, topic: str, partition: int, begin: int, end: int) -> Iterator[Record]:
        assert topic == TOPIC
        yield from self.kept[: end - begin] if partition == 0 else ()


def why(*kept: Record) -> str | None:
    topic = Topic(list(kept))
    told = Traffic(topic, SETTINGS, frozenset({ONE, TWO})).why_not_offline(NOW)
    assert topic.asked == [NOW - MINUTE]
    return told


def test_canaries_of_every_node_and_nothing_else_prove_that_nobody_writes() -> None:
    assert why(canary(ONE), canary(TWO)) is None


def test_a_write_of_the_last_minute_is_named() -> None:
    told = why(canary(ONE), canary(TWO), users(NOW - MINUTE + 1))
    assert told is not None
    assert told.startswith("imapuidtable was written at ")


def test_an_older_write_that_is_sent_again_is_no_traffic() -> None:
    assert why(canary(ONE), users(NOW - MINUTE - 1), canary(TWO)) is None


def test_another_keyspace_is_no_traffic_and_no_proof() -> None:
    assert why(canary(ONE), event("other", "imapuidtable", NOW), canary(TWO)) is None


@pytest.mark.parametrize(
    ("kept", "silent"),
    [
        ([], f"{ONE}, {TWO}"),
        ([canary(TWO)], ONE),
        ([canary(ONE), canary(TWO, NOW - 2 * MINUTE)], TWO),
    ],
    ids=["none", "of another node", "an old one"],
)
def test_a_node_without_a_canary_proves_nothing(kept: list[Record], silent: str) -> None:
    assert why(*kept) == f"no canary of the last minute has come back from node {silent}"


@pytest.mark.parametrize(
    "value", [b"\0avro", b"{}", b'{"source": []}', b'{"source": {"keyspace": 1}}']
)
def test_a_record_that_cannot_be_read_proves_nothing(value: bytes) -> None:
    told = why(canary(ONE), canary(TWO), Record(TOPIC, 0, 7, b"{}", value))
    assert told == f"the record at {TOPIC}/0 offset 7 cannot be read"


def test_a_tombstone_of_compaction_names_no_change() -> None:
    assert why(canary(ONE), canary(TWO), Record(TOPIC, 0, 7, b"{}", None)) is None


def test_without_kafka_a_fix_is_refused_and_the_override_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unreachable(_: object) -> None:
        raise Unreachable("no Kafka broker answers")

    monkeypatch.setattr(command, "Watcher", unreachable)
    with pytest.raises(NotOffline, match=r"no Kafka broker answers\. .*--ignore-traffic"):
        command.refuse_traffic(SETTINGS, frozenset({ONE}))
