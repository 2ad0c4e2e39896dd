"""Kafka's settings of topics: records are kept for long enough, and none is too large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from checkpoints.clock import now_micros, to_micros
from streaming.commands.doctor.checks.check import Check, KafkaContext, fine, problem, warning
from streaming.topics import LARGEST_EVENT

KEPT_AT_LEAST = timedelta(hours=24)
RECORD_BYTES = 2_048
"""Bytes of a record, on average, with a margin: 1.3 kB were measured."""
FEWEST_BYTES = 2**30
"""Bytes that each partition must keep, however few records the last day had."""
LARGEST_OWN = 2**19
"""Bytes: no record that we publish is larger; a dead letter has 64 KiB of its record, escaped."""


def topic_settings(broker: KafkaContext, present: list[str]) -> Iterator[Check]:
    """Retention by time and by bytes, compaction, and the largest record of topics that exist."""
    names = ("retention.ms", "retention.bytes", "cleanup.policy", "max.message.bytes")
    told = {name: broker.watcher.configured(present, name) for name in names}
    untold = {topic for known in told.values() for topic in set(present) - known.keys()}
    if untold:
        yield warning(
            f"how {len(untold)} topics keep their records is not known, {min(untold)} among them",
            "let the reconciler read their settings (DescribeConfigs)",
        )
    short = [*_retention(told["retention.ms"]), *_size(broker, told["retention.bytes"])]
    if not short and not untold:
        yield fine("topics keep records for a day or more")
    yield from short
    yield from _compaction(told["cleanup.policy"])
    yield from _largest(broker, told["max.message.bytes"])


def change(setting: str) -> str:
    """The command that changes a setting of a topic."""
    return (
        "kafka-configs.sh --bootstrap-server … --alter --entity-type topics --entity-name TOPIC"
        f" --add-config {setting}"
    )


def named(topics: Iterable[str]) -> str:
    """The topics as the subject of a sentence that a colon ends."""
    names = sorted(topics)
    return f"topic{'s' if len(names) > 1 else ''} {', '.join(names)}"


def alike(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each value of a setting, after its topics as text."""
    for value in sorted(set(values.values())):
        yield named(topic for topic, each in values.items() if each == value), value


def _retention(values: Mapping[str, str]) -> Iterator[Check]:
    least = KEPT_AT_LEAST // timedelta(milliseconds=1)
    for topics, ms in alike(values):
        if 0 <= int(ms) < least:
            yield problem(
                f"{topics}: records are kept for {int(ms) / 3_600_000:.1f} h (retention.ms {ms})",
                "fresh starts and long outages need a day or more:"
                f" {change('retention.ms=604800000')}",
            )


def _size(broker: KafkaContext, values: Mapping[str, str]) -> Iterator[Check]:
    """A limit in bytes deletes records of any age, so it must exceed what a day brings."""
    limited = {topic: int(size) for topic, size in values.items() if int(size) >= 0}
    if not limited:
        return
    yesterday = now_micros() - to_micros(KEPT_AT_LEAST.total_seconds())
    ends, since = broker.watcher.end_offsets(limited), broker.watcher.offsets_at(limited, yesterday)
    for topic, size in limited.items():
        a_day = max((end - since[topic, number] for number, end in ends[topic].items()), default=0)
        least = max(FEWEST_BYTES, RECORD_BYTES * a_day)
        if size < least:
            yield problem(
                f"topic {topic}: a partition keeps {size / 2**20:,.0f} MiB, however young"
                f" (retention.bytes {size}); a day or more may take {least / 2**20:,.0f} MiB",
                f"let time alone decide: {change('retention.bytes=-1')}",
            )


def _compaction(values: Mapping[str, str]) -> Iterator[Check]:
    """Compaction deletes records with the key of a later one, unread ones and canaries too."""
    for topics, policy in alike(values):
        if "compact" in policy:
            yield problem(
                f"{topics}: compacted (cleanup.policy {policy}), so events and canaries are dropped"
                " before they are read",
                f"{change('cleanup.policy=delete')}, then run `reconcile sweep`",
            )


def _largest(broker: KafkaContext, values: Mapping[str, str]) -> Iterator[Check]:
    for topic, size in values.items():
        events = topic == broker.settings.kafka.topic_prefix
        least = LARGEST_EVENT if events else LARGEST_OWN
        if int(size) < least:
            whose = "an agent" if events else "the stream"
            yield problem(
                f"topic {topic}: records over {int(size):,} bytes are refused (max.message.bytes),"
                f" and {whose} may send {least:,}",
                change(f"max.message.bytes={LARGEST_EVENT}"),
            )
