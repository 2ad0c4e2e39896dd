"""The topics that are created up front; the only place of the embedded stack that imports kafka."""

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

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
    admin = KafkaAdminClient(bootstrap_servers=spec.bootstrap_servers)
    try:
        present = set(admin.list_topics())
        limits = {"max.message.bytes": str(MAX_MESSAGE_BYTES)}
        new = [
            NewTopic(name, num_partitions=PARTITIONS, replication_factor=1, topic_configs=limits)
            for name in names(spec)
            if name not in present
        ]
        if new:
            admin.create_topics(new)
    except TopicAlreadyExistsError:
        pass  # a client asked for one between the two calls, and the broker made it
    finally:
        admin.close()


def answers(spec: Spec) -> bool:
    """Whether the broker lists its topics now."""
    try:
        admin = KafkaAdminClient(bootstrap_servers=spec.bootstrap_servers)
    except (KafkaError, OSError):
        return False
    try:
        admin.list_topics()
    except (KafkaError, OSError):
        return False
    finally:
        admin.close()
    return True
