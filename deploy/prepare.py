"""`python -m deploy.prepare --config FILE`: what has to be there before the CDC agent starts.

James's tables where the keyspace does not exist yet (James makes its own otherwise), change capture
on for each table that is watched, the table of canaries, and the topics. Running it again changes
nothing.
"""

import argparse
import logging
import sys
from pathlib import Path

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from deploy import wake_tables
from deploy.embedded import capture
from deploy.embedded.topics import PARTITIONS
from deploy.mailserver import james
from reconcilers.capture.frontier import CANARY_TABLE
from reconcilers.words.errors import ReconcilerError
from streaming import settings
from streaming.settings import CanarySettings, CassandraSettings, KafkaSettings
from streaming.tables import canary_schema, open_session
from streaming.topics import TOPIC_SETTINGS, own_topics, python_options

log = logging.getLogger("prepare")


def main(arguments: list[str]) -> int:
    """Prepare both servers. Returns 0, or 1 with one line on standard error that says why not."""
    parser = argparse.ArgumentParser(prog="python -m deploy.prepare", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="the reconciler's settings file")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s: %(message)s")
    logging.getLogger("cassandra").setLevel(logging.CRITICAL)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    try:
        wanted = settings.load(given.config)
        prepare_tables(wanted.cassandra, wanted.canary)
        prepare_topics(wanted.kafka)
    except (ReconcilerError, DriverException, NoHostAvailable, KafkaError, OSError) as error:
        print(f"prepare: {error}", file=sys.stderr)
        return 1
    return 0


def prepare_tables(wanted: CassandraSettings, canary: CanarySettings) -> None:
    """Make the keyspace with James's tables unless it exists, and turn change capture on.

    The canaries' keyspace is made with its table, which is captured, too.

    Needs a role that may create and alter. Raises the driver's errors, and `ReconcilerError`.
    """
    session = open_session(wanted.model_copy(update={"request_timeout": 60.0}))
    try:
        if wanted.keyspace not in session.cluster.metadata.keyspaces:
            log.info("making keyspace %s with James's tables", wanted.keyspace)
            james.create_schema(session, wanted.keyspace)
        capture.switch_on(session, wanted.keyspace, wake_tables.TABLES)
        canary_schema.create(session, canary.keyspace)
        capture.switch_on(session, canary.keyspace, [CANARY_TABLE])
    finally:
        session.cluster.shutdown()


def prepare_topics(wanted: KafkaSettings) -> None:
    """Make the topics that are missing: the agents' one, and the reconciler's own.

    Raises KafkaError, and `ReconcilerError`.
    """
    names = {wanted.topic_prefix, *own_topics(wanted)}
    admin = KafkaAdminClient(**python_options(wanted))
    try:
        missing = sorted(names.difference(admin.list_topics()))
        new = [NewTopic(name, PARTITIONS, -1, topic_configs=TOPIC_SETTINGS) for name in missing]
        if new:
            admin.create_topics(new)
        log.info("%d topics made", len(new))
    finally:
        admin.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
