"""Kafka: the topics are there, and keep records long enough to read them again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from streaming.commands.checks.check import Check, KafkaContext, Level, fine, warning
from streaming.topics import event_topics, own_topics

KEPT_AT_LEAST = timedelta(hours=24)


def topics(broker: KafkaContext) -> Iterator[Check]:
    """Event topics and our own exist, and their retention bridges a day."""
    gone, events = broker.watcher.missing, broker.settings.kafka.topic_prefix
    of_agent = [
        topic for family in broker.families for topic in event_topics(broker.settings, family, gone)
    ]
    wanted = tuple(dict.fromkeys((*of_agent, *own_topics(broker.settings.kafka))))
    missing = gone(wanted)
    for topic in missing:
        whose = "the agent's, for all tables: is it the topic.prefix of every agent?"
        yield Check(
            Level.PROBLEM,
            f"topic {topic} does not exist",
            f"create it: --fix ({whose if topic == events else 'ours'})",
            topics=(topic,),
        )
    present = [topic for topic in wanted if topic not in missing]
    if present:
        yield fine(f"{len(present)} topics are there")
        yield from _of_tables(set(present).intersection(of_agent) - {events})
        yield from _retention(broker, present)


def _of_tables(topics: set[str]) -> Iterator[Check]:
    """Topics that an agent of before version 0.2 wrote, or one that is not switched writes."""
    if topics:
        yield warning(
            f"{len(topics)} topics of single tables are there, {min(topics)} among them",
            "they are read to their end; switch every agent to one topic (deploy/runbook.md)",
        )


def _retention(broker: KafkaContext, present: list[str]) -> Iterator[Check]:
    least = KEPT_AT_LEAST // timedelta(milliseconds=1)
    short = {
        topic: kept
        for topic, kept in broker.watcher.retention(present).items()
        if kept is not None and kept < least
    }
    for topic, kept in short.items():
        yield warning(
            f"topic {topic} keeps records for {kept / 3_600_000:.1f} h",
            "set its retention.ms to a day or more: fresh starts and long outages need it",
        )
    if not short:
        yield fine("topics keep records for a day or more")
