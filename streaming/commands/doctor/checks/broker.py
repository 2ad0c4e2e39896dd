"""Kafka: the topics exist and keep every record long enough to read it again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from streaming.commands.doctor.checks.check import Check, KafkaContext, fine, problem, warning
from streaming.topics import own_topics

KEPT_AT_LEAST = timedelta(hours=24)


def topics(broker: KafkaContext) -> Iterator[Check]:
    """Event topics and ours exist, and retention lasts a day."""
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
        yield from _retention(broker, present)
        yield from _compaction(broker, present)


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


def _retention(broker: KafkaContext, present: list[str]) -> Iterator[Check]:
    least = KEPT_AT_LEAST // timedelta(milliseconds=1)
    kept = broker.watcher.configured(present, "retention.ms")
    short = {topic: int(ms) for topic, ms in kept.items() if 0 <= int(ms) < least}
    for topic, ms in short.items():
        yield warning(
            f"topic {topic} keeps records for {ms / 3_600_000:.1f} h",
            "set its retention.ms to a day or more: fresh starts and long outages need it",
        )
    untold = set(present) - kept.keys()
    if untold:
        yield warning(
            f"how {len(untold)} topics keep their records is not known, {min(untold)} among them",
            "let the reconciler read their settings (DescribeConfigs)",
        )
    elif not short:
        yield fine("topics keep records for a day or more")


def _compaction(broker: KafkaContext, present: list[str]) -> Iterator[Check]:
    """Compaction deletes records with the key of a later one, unread ones and canaries too."""
    for topic, policy in broker.watcher.configured(present, "cleanup.policy").items():
        if "compact" in policy:
            yield problem(
                f"topic {topic} is compacted: events and canaries are dropped before they are read",
                "set its cleanup.policy to delete, then run `reconcile sweep`",
            )
