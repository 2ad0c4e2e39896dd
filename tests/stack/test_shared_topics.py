"""An installation from before our topics were named by James's keyspace is carried over.

Every installation on one Kafka then published its keys to one topic, and its dead letters to
another. What these still hold is read; nothing more is written to them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient

from checkpoints.bookmarks import Bookmark, Place, flat
from checkpoints.cassandra import CassandraBookmarks, Store
from checkpoints.clock import now_micros
from deploy.mailserver.mail import Clock, Message
from reconcilers.words.model import Kind
from streaming.settings import KafkaSettings
from streaming.topics import Watcher
from tests.stack.rounds import Rows
from tests.stack.scenes import create_topics, publish, reconcile, records_of
from tests.stack.streams import until
from tests.stack.users import RIGHT, User, a_difference, a_message
from tests.stack.watched import SLOW, Restarted, Watched

pytestmark = [pytest.mark.stack, pytest.mark.long(part="capture")]

SUSPECTS, LETTERS = "reconciler.suspects", "reconciler.dead-letters"


@dataclass
class Carried:
    """Its stream, the old topics, and where the version before has read up to."""

    restarted: Restarted
    watcher: Watcher

    @property
    def place(self) -> Watched:
        return self.restarted.place

    @property
    def bookmarks(self) -> tuple[CassandraBookmarks, str]:
        store = Store(self.place.session, self.restarted.own)
        return CassandraBookmarks(store), f"{self.place.keyspace}/message/repair"

    def ends(self, *topics: str) -> dict[Place, int]:
        return flat(self.watcher.end_offsets(topics))

    def lost_insert(self) -> Message:
        """The listing lacks it; its event is in Kafka, and nobody will read that."""
        user = User(self.place.session, self.place.keyspace, Clock().now_us)
        message = a_message(RIGHT, now_micros())
        a_difference(Kind.MISSING_ROW, message, user)
        until("its event is in Kafka", lambda: self.event_of(message))
        return message

    def event_of(self, message: Message) -> Any:
        """The record of its truth's insert, None while there is none."""
        mailbox = str(message.mailboxid).encode()
        found = records_of(self.place.stack, self.place.stack.topic_prefix)
        return next((each for each in found if mailbox in (each.key or b"")), None)

    def agrees(self, message: Message) -> bool:
        return not Rows(self.place.session, self.place.keyspace).differences(message)

    def publish_key(self, message: Message) -> None:
        """As the version before has, to the topic of every installation."""
        ids = {
            "mailboxid": str(message.mailboxid),
            "messageid": str(message.messageid),
            "uid": message.uid,
        }
        told = {"oldest": None, "deleted_from": None, "deleted_at": None}
        asked = {"projection": "messages", "suspected": "missing_row"}
        value = json.dumps({"family": "message", "wake": {**ids, **told, **asked}})
        key = f"{message.mailboxid}/{message.uid}"
        publish(self.place.stack, SUSPECTS, [(key.encode(), value.encode())])

    def publish_letter(self, message: Message) -> None:
        """It stands for the event of this message."""
        event = self.event_of(message)
        at = {"topic": event.topic, "partition": event.partition, "offset": event.offset}
        value = json.dumps({**at, "reason": "malformed JSON or wrong types", "record": ""})
        publish(self.place.stack, LETTERS, [(b"letter", value.encode())])

    def leave_bookmark(self) -> None:
        """All that is in Kafka by now was read before the upgrade."""
        bookmarks, stream = self.bookmarks
        topics = [self.place.stack.topic_prefix, SUSPECTS]
        bookmarks.record(Bookmark(stream, self.ends(*topics), self.watcher.ids(topics)))

    def delete_suspects(self) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.place.stack.bootstrap_servers)
        try:
            admin.delete_topics([SUSPECTS])
            until("it is gone", lambda: self.watcher.missing([SUSPECTS]))
        finally:
            admin.close()


@pytest.fixture
def carried(place: Watched, tmp_path: Path) -> Iterator[Carried]:
    """Settings that name no topic: ours are named by the keyspace."""
    ours = KafkaSettings().of(place.keyspace)
    names = ("group", "suspects_topic", "observe_suspects_topic", "dead_letters_topic")
    changes = {"kafka": {name: getattr(ours, name) for name in names}}
    watcher = Watcher(KafkaSettings(bootstrap_servers=place.stack.bootstrap_servers))
    make_missing(place, watcher)
    restarted = place.stream(tmp_path, changes)
    yield Carried(restarted, watcher)
    restarted.forget()
    make_missing(place, watcher)
    watcher.close()


def make_missing(place: Watched, watcher: Watcher) -> None:
    """The old topics, where they are not there: other tests may have them, too."""
    if missing := watcher.missing([SUSPECTS, LETTERS]):
        create_topics(place.stack, missing)


def test_what_the_shared_topics_hold_is_read_to_their_end(carried: Carried) -> None:
    read, waiting, undecoded = (carried.lost_insert() for _ in range(3))
    carried.publish_key(read)
    carried.leave_bookmark()
    carried.publish_key(a_message(RIGHT, now_micros()))  # of another installation
    carried.publish_key(waiting)
    carried.publish_letter(undecoded)
    ends = carried.ends(SUSPECTS, LETTERS)
    stream, (bookmarks, name) = carried.restarted.stream, carried.bookmarks

    with stream:
        until("the key that waited was looked at", lambda: carried.agrees(waiting), SLOW)
        until("its finding ends", lambda: stream.findings(uid=waiting.uid, state="verified"))
        until("the shared topic is settled", lambda: settled_to(bookmarks, name, ends))
        retried = reconcile("findings", "--retry-dead-letters", "--config", str(stream.config))
        assert "retried" in retried.stdout, retried.stdout + retried.stderr
        until("the letter's event was looked at", lambda: carried.agrees(undecoded), SLOW)
        assert not carried.agrees(read), "what the version before has read was read again"
        assert carried.ends(SUSPECTS, LETTERS) == ends, "something was written there"
        assert stream.stop() == 0

    carried.delete_suspects()
    with stream:
        stream.wait_until_watching()
        assert stream.said("deleted, and read to their end before: reconciler.suspects")
        assert stream.stop() == 0


def settled_to(bookmarks: CassandraBookmarks, stream: str, ends: dict[Place, int]) -> bool:
    newest = bookmarks.newest(stream)
    shared = [place for place in ends if place[0] == SUSPECTS]
    return newest is not None and all(newest.settled.get(at) == ends[at] for at in shared)
