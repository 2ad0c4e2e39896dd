"""What we publish to Kafka: keys to look at again, and records that cannot be examined.

Each process, such as a Spark worker, makes its producer once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from kafka import KafkaProducer

from reconcilers.declared.family import Family
from reconcilers.words.key import named
from reconcilers.words.model import PUBLISHED, KeyValue, Wake
from streaming.settings import KafkaSettings
from streaming.topics.clients import Renewed
from streaming.topics.kafka_errors import translated
from streaming.topics.record import Record


@cache
def _producer(settings: KafkaSettings) -> Renewed[KafkaProducer]:
    """The producer of this process.

    It is not idempotent: once a batch expires, an idempotent one fails for good.

    A record may arrive twice or out of order without harm: either way it leads to one look.
    """
    fixed = {
        "acks": "all",
        "enable_idempotence": False,
        "retries": 10,
        "linger_ms": 5,
        "max_request_size": 8 * 1024 * 1024,
    }
    return Renewed(settings, lambda options: KafkaProducer(**options, **fixed))


def _send(
    settings: KafkaSettings, topic: str, values: Iterable[tuple[bytes | None, bytes | None]]
) -> None:
    """Send and wait until all are acknowledged. Raises `Unreachable`."""
    with translated(f"Kafka at {settings.bootstrap_servers}"):
        producer = _producer(settings).now()
        sent = [producer.send(topic, key=key, value=value) for key, value in values]
        for each in sent:
            each.get(timeout=60)


def publish_wakes(
    settings: KafkaSettings, topic: str, family: Family, wakes: Iterable[Wake]
) -> None:
    """Publish keys to be looked at again, one delay after Spark reads them (step 7)."""
    _send(settings, topic, (suspect_record(family, wake) for wake in wakes))


def suspect_record(family: Family, wake: Wake) -> tuple[bytes, bytes]:
    """The key and the value of the record of a suspect."""
    ids = named(family.named, (wake.key[0], wake.source, *wake.key[1:]))
    told = {name: getattr(wake, name) for name in PUBLISHED}
    value = json.dumps({"family": family.name, "wake": {**ids, **told}}).encode()
    return suspect_key(wake.key), value


def suspect_key(key: Iterable[KeyValue | None]) -> bytes:
    """The key of a suspect's record."""
    return "/".join(str(part) for part in key).encode()


def projection_of(record: Record) -> str | None:
    """The projection that a suspect's record names; None if it means all of them."""
    try:
        told = json.loads(record.value or b"{}")["wake"]["projection"]
    except (ValueError, LookupError, TypeError):
        return None
    return told if isinstance(told, str) else None


def publish_dead_letters(settings: KafkaSettings, letters: Iterable[Mapping[str, Any]]) -> None:
    """Publish what cannot be examined: topic, partition, offset, reason, the record's beginning."""
    _send(settings, settings.dead_letters_topic, (_dead_letter(letter) for letter in letters))


def publish_again(settings: KafkaSettings, records: Iterable[Record]) -> None:
    """Publish records again, unchanged, to the topics from which they came."""
    for record in records:
        _send(settings, record.topic, ((record.key, record.value),))


def _dead_letter(letter: Mapping[str, Any]) -> tuple[bytes, bytes]:
    raw = bytes(letter["raw"] or b"").decode("utf-8", "replace")
    place = {name: letter[name] for name in ("topic", "partition", "offset", "reason")}
    key = f"{letter['topic']}/{letter['partition']}/{letter['offset']}"
    return key.encode(), json.dumps({**place, "record": raw}).encode()
