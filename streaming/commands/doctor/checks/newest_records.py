"""Kafka: the newest records of each topic are of the kind that is read from it."""

from __future__ import annotations

from collections.abc import Iterator

from streaming.commands.doctor.checks.check import Check, KafkaContext, fine, problem
from streaming.settings import KafkaSettings
from streaming.topics import Record, own_topics
from streaming.topics.formats import misread

MEMBERS = ("wake", "wake", "reason")
"""What the value of a record has, in the order of `own_topics`."""


def newest_records(broker: KafkaContext, present: list[str]) -> Iterator[Check]:
    """The last record of each partition; one line for each topic that has any."""
    kafka, watcher = broker.settings.kafka, broker.watcher
    for topic, ends in watcher.end_offsets(present).items():
        newest = [
            record
            for number, end in ends.items()
            if end
            for record in watcher.records(topic, number, end - 1, end)
        ]
        wrong = [(each, why) for each in newest if (why := _why(kafka, each)) is not None]
        if wrong:
            record, why = wrong[0]
            place = f"{topic}/{record.partition} offset {record.offset}"
            yield problem(f"the newest record of {place} cannot be read", why)
        elif newest:
            yield fine(f"the newest records of {topic} can be read")


def _why(kafka: KafkaSettings, record: Record) -> str | None:
    """Why a record is not what is read from its topic; None if it is."""
    if record.topic == kafka.topic_prefix:
        if record.value is None:  # a tombstone of Kafka's compaction names no change
            return None
        return misread("value", record.value, "source") or misread("key", record.key)
    member = dict(zip(own_topics(kafka), MEMBERS, strict=True))[record.topic]
    why = misread("value", record.value, member)
    return why and f"{why}: does another program write to this topic?"
