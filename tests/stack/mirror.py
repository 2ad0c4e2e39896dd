"""A test's own topics, as an agent would write them: the real events of a keyspace, copied."""

import json
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

from streaming.settings import CanarySettings
from tests.endpoints import Endpoints


class Mirror:
    """Copies what the agent writes of one keyspace from now on, until the end of the ``with``.

    ``topic_of`` says where to, given the table, None: nowhere; another may be set meanwhile, as
    when an agent is started anew with other settings. Canaries are copied, too. What tells of a
    mailbox in ``lost`` is lost on the way, as single events may be.
    """

    def __init__(
        self, stack: Endpoints, keyspace: str, topic_of: Callable[[str], str | None]
    ) -> None:
        self.topic_of = topic_of
        self._stack = stack
        copied = (keyspace, CanarySettings().keyspace)
        self._copied = tuple(f'"keyspace":"{each}"'.encode() for each in copied)
        self.lost: frozenset[bytes] = frozenset()
        self._stop, self._listens = Event(), Event()
        self._thread = Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Mirror":
        self._thread.start()
        self._listens.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        servers = self._stack.bootstrap_servers
        consumer = KafkaConsumer(self._stack.topic_prefix, bootstrap_servers=servers)
        producer = KafkaProducer(bootstrap_servers=servers)
        try:
            while not consumer.assignment():
                consumer.poll(timeout_ms=100)
            consumer.seek_to_end()
            for each in consumer.assignment():
                consumer.position(each)
            self._listens.set()
            while not self._stop.is_set():
                for records in consumer.poll(timeout_ms=200).values():
                    for record in records:
                        self._copy(producer, record)
        finally:
            self._listens.set()
            consumer.close()
            producer.close()

    def _copy(self, producer: KafkaProducer, record: Any) -> None:
        told = (record.key or b"") + (record.value or b"")
        if any(each in told for each in self.lost):
            return
        if record.value and any(each in record.value for each in self._copied):
            topic = self.topic_of(str(json.loads(record.value)["source"]["table"]))
            if topic is not None:
                producer.send(topic, key=record.key, value=record.value)
