"""Waiting for change events in Kafka."""

import json
import time

from kafka import KafkaConsumer

from deploy.embedded.wait import HANG_S


def comes(servers: str, topic: str, key: dict[str, object]) -> bool:
    """Whether an event with this key is in the topic within `HANG_S`."""
    consumer = KafkaConsumer(
        topic, bootstrap_servers=servers, auto_offset_reset="earliest", metadata_max_age_ms=1000
    )
    try:
        deadline = time.monotonic() + HANG_S
        while time.monotonic() < deadline:
            polled = consumer.poll(timeout_ms=500)
            if any(_key(record.key) == key for batch in polled.values() for record in batch):
                return True
        return False
    finally:
        consumer.close()


def _key(text: bytes | None) -> object:
    """None where a test has written what is no key."""
    try:
        return json.loads(text or b"")
    except ValueError:
        return None
