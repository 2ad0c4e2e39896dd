"""An installation whose agents wrote a topic for each table is carried over to one topic.

What its old topics still hold is read, and what the one topic holds, too. When the old ones were
read to their end they may be deleted. Real events, copied to topics of the test's own.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from checkpoints.bookmarks import Bookmark, flat
from checkpoints.cassandra import CassandraBookmarks, Store
from streaming.settings import KafkaSettings
from streaming.topics import Watcher
from tests.stack.mirror import Mirror
from tests.stack.scenes import create_topics, records_of
from tests.stack.streams import until
from tests.stack.users import PROJECTION, TRUTH
from tests.stack.watched import Restarted, Watched

pytestmark = [pytest.mark.stack, pytest.mark.long(part="capture")]

TABLES = (TRUTH, PROJECTION)


class Installation:
    """Its agents' topics before and after; which of them get the events of the keyspace now."""

    def __init__(self, place: Watched, mirror: Mirror, prefix: str) -> None:
        self.stack, self.keyspace = place.stack, place.keyspace
        self.mirror, self.one = mirror, prefix
        self.watcher = Watcher(KafkaSettings(bootstrap_servers=self.stack.bootstrap_servers))

    @property
    def old(self) -> list[str]:
        return [f"{self.one}.{self.keyspace}.{table}" for table in TABLES]

    def switch_agents(self) -> None:
        """From now on all events come in the one topic."""
        create_topics(self.stack, [self.one])
        self.mirror.topic_of = lambda _table: self.one

    def ends(self, *topics: str) -> dict[tuple[str, int], int]:
        return flat(self.watcher.end_offsets(topics))

    def delete_old(self) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.stack.bootstrap_servers)
        try:
            admin.delete_topics(self.old)
            until("they are gone", lambda: self.watcher.missing(self.old) == self.old)
        finally:
            admin.close()


@pytest.fixture
def installation(place: Watched) -> Iterator[Installation]:
    prefix = f"agents_{uuid.uuid4().hex[:8]}"

    def topic_of(table: str) -> str | None:
        return f"{prefix}.{place.keyspace}.{table}" if table in TABLES else None

    create_topics(place.stack, [f"{prefix}.{place.keyspace}.{table}" for table in TABLES])
    with Mirror(place.stack, place.keyspace, topic_of) as mirror:
        made = Installation(place, mirror, prefix)
        yield made
        made.watcher.close()


def heard(installation: Installation, restarted: Restarted, *topics: str) -> None:
    """Until each message that was planted has an event in these topics, or those before."""

    def all_came() -> bool:
        keys = [each.key for each in records_of(installation.stack, *topics)]
        names = [str(message.mailboxid).encode() for message in restarted.messages]
        return all(any(name in key for key in keys) for name in names)

    until("the events are in Kafka", all_came)


def test_both_are_read_and_the_old_ones_may_be_deleted_then(
    installation: Installation, place: Watched, tmp_path: Path
) -> None:
    old, one = installation.old, installation.one
    restarted = place.stream(tmp_path, {"kafka": {"topic_prefix": one}})
    bookmarks = CassandraBookmarks(Store(place.session, restarted.own))
    stream = f"{place.keyspace}/message/repair"
    left = Bookmark(stream, installation.ends(*old), installation.watcher.ids(old))
    bookmarks.record(left)  # as a version before has
    try:
        restarted.plant()
        heard(installation, restarted, *old)
        installation.switch_agents()
        restarted.plant()
        heard(installation, restarted, *old, one)

        restarted.stream.start()
        restarted.await_convergence()
        restarted.each_was_repaired_once()

        def read_to_the_end() -> bool:
            newest = bookmarks.newest(stream)
            ends = installation.ends(*old)
            return newest is not None and all(newest.settled[at] == ends[at] for at in ends)

        until("the old topics are settled to their end", read_to_the_end)
        assert restarted.stream.stop() == 0

        installation.delete_old()
        restarted.stream.start()
        restarted.stream.wait_until_watching()
        assert restarted.stream.said("deleted, and read to their end before")
        restarted.plant()
        restarted.await_convergence()
        assert restarted.stream.stop() == 0
    finally:
        restarted.forget()
