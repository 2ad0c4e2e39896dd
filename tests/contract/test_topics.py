"""What a real broker tells of topics, and what `reconcile doctor` makes of it."""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigFilterType, ConfigResource, ConfigResourceType, NewTopic

from checkpoints.bookmarks import Bookmark
from deploy.prepare import prepare_topics
from reconcilers.declared.families.message import MESSAGE
from streaming.commands.doctor.checks.bookmarks import too_old
from streaming.commands.doctor.checks.broker import topics
from streaming.commands.doctor.checks.check import KafkaContext, Level
from streaming.settings import KafkaSettings, Settings
from streaming.topics import Watcher, own_topics
from tests.endpoints import Endpoints
from tests.stack.streams import until

POLICY = "cleanup.policy"


@pytest.fixture
def kafka(stack: Endpoints) -> KafkaSettings:
    """Topics of this test's own, none of which exists."""
    own = f"topics-{uuid.uuid4().hex[:8]}"
    return KafkaSettings(
        bootstrap_servers=stack.bootstrap_servers,
        topic_prefix=own,
        suspects_topic=f"{own}.suspects",
        observe_suspects_topic=f"{own}.suspects.observe",
        dead_letters_topic=f"{own}.dead-letters",
    )


@pytest.fixture
def watcher(kafka: KafkaSettings) -> Iterator[Watcher]:
    with closing(Watcher(kafka)) as made:
        yield made


def create(kafka: KafkaSettings, topic: str, **settings: str) -> None:
    """Make a topic with these settings."""
    configs = {name.replace("_", "."): value for name, value in settings.items()}
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(topic, 1, 1, topic_configs=configs)])


def set_by_hand(kafka: KafkaSettings, names: Iterable[str]) -> dict[str, str]:
    """The cleanup policy of those topics that do not just have the broker's own."""
    asked = [ConfigResource(ConfigResourceType.TOPIC, each, [POLICY]) for each in names]
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
        told = admin.describe_configs(asked, config_filter=ConfigFilterType.MODIFIED)["topic"]
    return {name: each[POLICY]["value"] for name, each in told.items() if POLICY in each}


def found(kafka: KafkaSettings, watcher: Watcher, level: Level = Level.PROBLEM) -> list[str]:
    """What doctor says of the topics at this level."""
    context = KafkaContext(Settings(kafka=kafka), (MESSAGE,), watcher)
    return [each.what for each in topics(context) if each.level is level]


def test_what_is_made_here_is_in_order(kafka: KafkaSettings, watcher: Watcher) -> None:
    mine = (kafka.topic_prefix, *own_topics(kafka))
    assert found(kafka, watcher) == [f"topic {each} does not exist" for each in mine]
    watcher.create(mine)
    assert set_by_hand(kafka, mine) == dict.fromkeys(mine, "delete")
    assert len(watcher.partitions(kafka.topic_prefix)) == kafka.partitions
    assert found(kafka, watcher) == []
    (alone,) = found(kafka, watcher, Level.WARNING)
    assert alone.startswith(f"topics {', '.join(sorted(mine))}: ")
    assert "one copy, and with one broker there cannot be more" in alone


def test_so_is_what_is_prepared_for_containers(kafka: KafkaSettings, watcher: Watcher) -> None:
    mine = (kafka.topic_prefix, *own_topics(kafka))
    prepare_topics(kafka)
    until("the broker tells of them", lambda: not watcher.missing(mine))
    assert set_by_hand(kafka, mine) == dict.fromkeys(mine, "delete")
    assert found(kafka, watcher) == []


def test_a_compacted_topic_is_a_problem(kafka: KafkaSettings, watcher: Watcher) -> None:
    create(kafka, kafka.topic_prefix, cleanup_policy="compact,delete")
    watcher.create(own_topics(kafka))
    (only,) = found(kafka, watcher)
    assert only.startswith(f"topic {kafka.topic_prefix}: compacted (cleanup.policy compact,delete)")


def test_short_retention_is_a_problem(kafka: KafkaSettings, watcher: Watcher) -> None:
    create(kafka, kafka.topic_prefix, retention_ms=str(90 * 60 * 1000), retention_bytes="100000000")
    create(kafka, kafka.suspects_topic, retention_ms="-1")
    watcher.create(own_topics(kafka))
    ms, size = found(kafka, watcher)
    assert ms.startswith(f"topic {kafka.topic_prefix}: records are kept for 1.5 h")
    assert size.startswith(f"topic {kafka.topic_prefix}: a partition keeps 95 MiB, however young")


def test_an_event_that_is_too_large_for_its_topic_is_a_problem(
    kafka: KafkaSettings, watcher: Watcher
) -> None:
    create(kafka, kafka.topic_prefix, max_message_bytes="1048588")
    watcher.create(own_topics(kafka))
    (only,) = found(kafka, watcher)
    assert only.startswith(f"topic {kafka.topic_prefix}: records over 1,048,588 bytes are refused")


def test_the_newest_record_is_looked_at(kafka: KafkaSettings, watcher: Watcher) -> None:
    topic, event = kafka.topic_prefix, b'{"op": "i", "source": {}}'
    watcher.create((topic, *own_topics(kafka)))
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)) as producer:
        for value, wrong in ((b'{"schema": {}, "payload": %s}' % event, True), (event, False)):
            producer.send(topic, value, key=b"{}", partition=1).get(timeout=60)
            (at,) = (end for end in watcher.end_offsets([topic])[topic].values() if end)
            told = f"the newest record of {topic}/1 offset {at - 1} cannot be read"
            assert found(kafka, watcher) == [told] * wrong


def test_the_marker_of_a_transaction_is_an_offset_without_a_record(
    kafka: KafkaSettings, watcher: Watcher
) -> None:
    topic = kafka.topic_prefix
    create(kafka, topic)
    with closing(
        KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=topic)
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"an event")
        producer.commit_transaction()
    until("the marker is there", lambda: watcher.end_offsets([topic]) == {topic: {0: 2}})
    assert watcher.holds_records((topic, 0), 0, 2)
    assert not watcher.holds_records((topic, 0), 1, 2)
    assert not watcher.holds_records((topic, 0), 2, 2)


def test_records_that_kafka_has_deleted_after_a_bookmark_are_counted(
    kafka: KafkaSettings, watcher: Watcher
) -> None:
    events = kafka.topic_prefix
    create(kafka, events)
    with closing(KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)) as producer:
        for _ in range(5):
            producer.send(events, b"record")
        producer.flush()
    named = [Bookmark("ours", {(events, 0): at}, name=f"after {at}") for at in (1, 4)]
    assert list(too_old(named, watcher.beginning_offsets([events]))) == []
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
        admin.delete_records({TopicPartition(events, 0): 4})
    (told,) = too_old(named, watcher.beginning_offsets([events]))
    assert told.what.startswith("bookmark after 1 of ")
    assert "Kafka has deleted 3 records after it" in told.what
