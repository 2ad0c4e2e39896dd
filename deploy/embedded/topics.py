"""The topics that are created up front; the agent's, and the reconciler's own."""

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

from deploy.embedded import kafka_clients
from deploy.embedded.spec import Spec

PARTITIONS = 2
MAX_MESSAGE_BYTES = 8 * 1024 * 1024
RECONCILER_TOPICS = (
    "reconciler.suspects",
    "reconciler.suspects.observe",
    "reconciler.dead-letters",
)


def names(spec: Spec) -> list[str]:
    """The agent's one topic, and those of the reconciler itself."""
    return [spec.topic_prefix, *RECONCILER_TOPICS]


def create(spec: Spec) -> None:
    """Create the topics that are missing. Raises KafkaError."""
    admin = KafkaAdminClient(**kafka_clients.options(spec))
    try:
        present = set(admin.list_topics())
        limits = {"max.message.bytes": str(MAX_MESSAGE_BYTES)}
        new = [
            NewTopic(name, num_partitions=PARTITIONS, replication_factor=1, topic_configs=limits)
            for name in names(spec)
            if name not in present
        ]
        if new and spec.tls is not None:
            kafka_clients.grant(admin)
        if new:
            admin.create_topics(new)
    except TopicAlreadyExistsError:
        pass  # a client asked for one between the two calls, and the broker made it
    finally:
        admin.close()


def answers(spec: Spec) -> bool:
    """Whether the broker lists its topics now."""
    try:
        admin = KafkaAdminClient(**kafka_clients.options(spec))
    except (KafkaError, OSError):
        return False
    try:
        admin.list_topics()
    except (KafkaError, OSError):
        return False
    finally:
        admin.close()
    return True
