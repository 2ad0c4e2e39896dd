"""Settings under which a stream must not write: refused at its start, before anything is opened."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.words.errors import Misconfigured
from streaming.settings.model import Settings
from streaming.settings.work import Mode

SHORTEST_DELAY = 35.0
"""Seconds: James retries a write for up to 31 s, and clocks differ by a few more."""
FEWEST_LOOKS = 2
SHORTEST_LAG = 1.0
SHORTEST_QUOTA_LAG = 60.0
"""Seconds."""


def refuse_unsafe(settings: Settings, mode: Mode) -> None:
    """Raise `Misconfigured`, in one line, for settings that contradict each other.

    In repair mode also for dangerous ones, unless ``repair.allow_unsafe_settings`` is set.
    """
    for wrong in contradictions(settings):
        raise Misconfigured(wrong)
    if mode is not Mode.REPAIR or settings.repair.allow_unsafe_settings:
        return
    for wrong in dangers(settings):
        raise Misconfigured(
            f"not in repair mode: {wrong} (repair.allow_unsafe_settings = true, if you mean it)"
        )


def contradictions(settings: Settings) -> Iterator[str]:
    """Settings that no installation can mean: equal names that must be different."""
    cassandra = settings.cassandra
    others = {
        "cassandra.keyspace, James's own": cassandra.keyspace,
        "canary.keyspace": settings.canary.keyspace,
    }
    for name, keyspace in others.items():
        if keyspace == cassandra.own_keyspace:
            yield f"setting cassandra.own_keyspace is that of {name}: {keyspace}"
    if settings.canary.keyspace == cassandra.keyspace:
        yield f"setting canary.keyspace is that of James: {cassandra.keyspace}"
    topics: dict[str, str] = {}
    names = ("topic_prefix", "suspects_topic", "observe_suspects_topic", "dead_letters_topic")
    for name in names:
        topic = getattr(settings.kafka, name)
        if topic is not None and topic in topics:
            yield f"settings kafka.{topics[topic]} and kafka.{name} name the same topic: {topic}"
        topics[topic] = name


def dangers(settings: Settings) -> Iterator[str]:
    """Settings that disable a guard, each with the reason."""
    delay, tally = settings.stream.delay, settings.tally
    if delay < SHORTEST_DELAY:
        yield (
            f"stream.delay is {delay:g} s, and James retries a write for up to 31 s:"
            f" below {SHORTEST_DELAY:g} s the guards guard little"
        )
    if settings.cassandra.request_timeout > delay:
        yield (
            f"cassandra.request_timeout is {settings.cassandra.request_timeout:g} s, longer than"
            " stream.delay: a repair may arrive after the look that is to verify it"
        )
    if tally.projections and tally.looks < FEWEST_LOOKS:
        yield f"tally.looks is {tally.looks}: one look cannot tell an error from a write in flight"
    if tally.projections and tally.max_update_lag < SHORTEST_LAG:
        yield (
            f"tally.max_update_lag is {tally.max_update_lag:g} s: James writes counters later"
            " than that"
        )
    if tally.projections and tally.max_quota_lag < SHORTEST_QUOTA_LAG:
        yield (
            f"tally.max_quota_lag is {tally.max_quota_lag:g} s: a backlog of James's event bus,"
            " which is longer, would look like an error of every quota"
        )
