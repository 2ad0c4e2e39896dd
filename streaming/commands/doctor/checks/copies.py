"""Copies of topics: the loss of one broker loses no record, and stops no agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from streaming.commands.doctor.checks.check import Check, KafkaContext, fine, problem, warning
from streaming.commands.doctor.checks.topic_settings import alike, change, named
from streaming.topics import ACKNOWLEDGED_BY, COPIES, PartitionCopies

MANY = 64
"""Partitions of the agents' topic: each gets a canary of each node every `canary.interval`."""
REASSIGN = "kafka-reassign-partitions.sh (deploy/runbook.md, *Copies of topics*)"

Topics = Mapping[str, Sequence[PartitionCopies]]


def copies(broker: KafkaContext, present: list[str]) -> Iterator[Check]:
    """Replication, acknowledgement, election and partitions of topics that exist."""
    there = broker.watcher.copies(present)
    found = [
        *_single(there.topics, there.brokers),
        *_acknowledged(broker, there.topics),
        *_unclean(broker, there.topics),
        *_partitions(there.topics),
    ]
    yield from found
    if not found:
        yield fine("topics survive the loss of a broker")
    yield from _number(broker, len(there.topics.get(broker.settings.kafka.topic_prefix, ())))


def _number(broker: KafkaContext, number: int) -> Iterator[Check]:
    """The agents' topic has neither too few nor too many partitions; 0 if it does not exist."""
    events, wanted = broker.settings.kafka.topic_prefix, broker.settings.kafka.partitions
    if 0 < number < wanted:
        yield warning(
            f"topic {events}: {number} partitions, fewer than kafka.partitions ({wanted}): no more"
            " tasks read events at once",
            "double their number until it is reached, or lower the setting (deploy/runbook.md,"
            " *Add partitions to the agents' topic*)",
        )
    if number > MANY:
        a_second = number / broker.settings.canary.interval
        yield warning(
            f"topic {events}: {number} partitions, each with canaries: {a_second:.0f} writes a"
            " second to each node",
            "raise canary.interval, or recreate the topic with fewer while agents and stream are"
            " stopped, then run `reconcile sweep`",
        )


def _fewest(partitions: Sequence[PartitionCopies]) -> int:
    return min((each.copies for each in partitions), default=0)


def _single(topics: Topics, brokers: int) -> Iterator[Check]:
    single = [topic for topic, partitions in topics.items() if _fewest(partitions) == 1]
    if single and brokers == 1:
        yield warning(
            f"{named(single)}: one copy, and with one broker there cannot be more; if its disk is"
            " lost, so are the events that were not read",
            f"run three brokers, then {REASSIGN}",
        )
    elif single:
        yield problem(
            f"{named(single)}: one copy (replication factor 1) on one of {brokers} brokers; if its"
            " disk is lost, so are the events that were not read",
            f"make {min(COPIES, brokers)} copies: {REASSIGN}",
        )


def _acknowledged(broker: KafkaContext, topics: Topics) -> Iterator[Check]:
    """A record counts as written once two copies have it, also while a broker is down."""
    setting = "min.insync.replicas"
    equal: dict[tuple[int, int], list[str]] = {}
    for topic, value in broker.watcher.configured(topics, setting).items():
        equal.setdefault((int(value), _fewest(topics[topic])), []).append(topic)
    for (least, there), some in sorted(equal.items()):
        told = f"{named(some)}: {setting} is {least}, of {there} copies:"
        right = change(f"{setting}={min(there, ACKNOWLEDGED_BY)}")
        if least > there:
            yield problem(f"{told} nothing can be written", right)
        elif least < min(there, ACKNOWLEDGED_BY):
            yield problem(f"{told} what counts as written may be on one broker alone", right)
        elif least == there > 1:
            mend = right if there >= COPIES else f"make {COPIES} copies: {REASSIGN}"
            yield warning(f"{told} agents wait while a broker is down, and cdc_raw fills", mend)


def _unclean(broker: KafkaContext, topics: Topics) -> Iterator[Check]:
    setting = "unclean.leader.election.enable"
    values = broker.watcher.configured(topics, setting)
    for some, value in alike(
        {name: each for name, each in values.items() if _fewest(topics[name]) > 1}
    ):
        if value == "true":
            yield problem(
                f"{some}: a broker that lacks records may become leader ({setting} true), and they"
                " are lost",
                change(f"{setting}=false"),
            )


def _partitions(topics: Topics) -> Iterator[Check]:
    for topic, partitions in topics.items():
        for each in partitions:
            if not each.is_led:
                yield problem(
                    f"topic {topic}: partition {each.number} has no leader: nothing is read or"
                    " written there",
                    "start the brokers that hold its copies",
                )
        late = [
            str(each.number) for each in partitions if each.is_led and each.in_sync < each.copies
        ]
        if late:
            yield warning(
                f"topic {topic}: copies of partitions {', '.join(late)} are not in sync",
                "is a broker down? kafka-topics.sh --describe --under-replicated-partitions",
            )
