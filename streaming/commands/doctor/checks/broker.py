"""Kafka: the topics exist, and keep each record until it was read."""

from __future__ import annotations

from collections.abc import Iterator

from streaming.commands.doctor.checks.check import Check, KafkaContext, fine, problem
from streaming.commands.doctor.checks.copies import copies
from streaming.commands.doctor.checks.newest_records import newest_records
from streaming.commands.doctor.checks.topic_settings import topic_settings
from streaming.topics import own_topics


def topics(broker: KafkaContext) -> Iterator[Check]:
    """The agents' topic and ours exist; what exists loses no record, and holds records of ours."""
    events = broker.settings.kafka.topic_prefix
    wanted = (events, *own_topics(broker.settings.kafka))
    missing = broker.watcher.missing(wanted)
    for topic in missing:
        whose = "the agent's, for all tables: is it the topic.prefix of every agent?"
        yield problem(
            f"topic {topic} does not exist",
            f"create it: --fix ({whose if topic == events else 'ours'})",
            topics=(topic,),
        )
    present = [topic for topic in wanted if topic not in missing]
    if present:
        yield fine(f"{len(present)} topics are there")
        yield from _of_single_tables(broker)
        yield from topic_settings(broker, present)
        yield from copies(broker, present)
        yield from newest_records(broker, present)


def _of_single_tables(broker: KafkaContext) -> Iterator[Check]:
    """Topics with the agent's default names, one a table: no stream reads them."""
    prefix = f"{broker.settings.kafka.topic_prefix}.{broker.settings.cassandra.keyspace}"
    tables = {table for family in broker.families for table in family.wakes_on}
    possible = {f"{prefix}.{table}" for table in tables}
    topics = possible.difference(broker.watcher.missing(sorted(possible)))
    if topics:
        yield problem(
            f"{len(topics)} topics of single tables exist, which no stream reads, {min(topics)}"
            " among them",
            "set the topic.* lines of deploy/agent/agent.properties at every agent, delete these"
            " topics, then run `reconcile sweep`",
        )
