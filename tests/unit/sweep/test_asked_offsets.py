"""Which offsets the command line of a replay means."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from checkpoints.bookmarks import Bookmark, KafkaIds, Offsets, nested
from reconcilers.words.errors import Misconfigured
from streaming.again.replay import Replayable
from streaming.commands.again.replay import AskedOffsets
from tests.fakes.checkpoints.progress import MemoryBookmarks

STREAM, SUSPECTS = "mail/message/repair", "suspects"
ZERO, ONE = ("james", 0), ("james", 1)
BY_NAME = Namespace(bookmark="before", from_time=None, to_time=None)


@dataclass
class Kafka:
    """Topics with ten records a partition, of which none was deleted."""

    topics: dict[str, int] = field(default_factory=lambda: {"james": 2, SUSPECTS: 1})

    def end_offsets(self, topics: Iterable[str]) -> Offsets:
        return self._each(topics, 10)

    def beginning_offsets(self, topics: Iterable[str]) -> Offsets:
        return self._each(topics, 0)

    def ids(self, topics: Iterable[str]) -> KafkaIds:
        return KafkaIds("one", {each: "as ever" for each in topics if each in self.topics})

    def offsets_at(self, topics: Iterable[str], _at: int) -> dict[tuple[str, int], int]:
        return {(each, at): 0 for each in topics for at in range(self.topics.get(each, 0))}

    def _each(self, topics: Iterable[str], offset: int) -> Offsets:
        places = {
            (each, number): offset for each in topics for number in range(self.topics.get(each, 0))
        }
        return nested(places)


def asked(kafka: Kafka, bookmark: Bookmark, arguments: Namespace = BY_NAME) -> Replayable:
    bookmarks = MemoryBookmarks(clock=lambda: 1)
    bookmarks.name(bookmark, "before")
    own = frozenset({SUSPECTS})
    return AskedOffsets(kafka, ("james",), bookmarks, STREAM, own).of(arguments, STREAM)  # type: ignore[arg-type]


def test_a_bookmark_is_replayed_from_its_offsets_and_new_partitions_from_0() -> None:
    found = asked(Kafka(), Bookmark(STREAM, {ZERO: 4, (SUSPECTS, 0): 3}))
    assert found == Replayable({ZERO: 4, ONE: 0}, {ZERO: 10, ONE: 10})


@pytest.mark.parametrize("left", [{"james": 2}, {"james": 2, "james.other": 1}])
def test_topics_of_a_bookmark_that_are_not_read_are_named_and_nothing_is_replayed(
    left: dict[str, int],
) -> None:
    """Whether such a topic was deleted, or another one is configured now."""
    before = {ZERO: 4, ("james.other", 0): 7, (SUSPECTS, 0): 3}
    with pytest.raises(Misconfigured, match=r"james\.other: deleted since") as refused:
        asked(Kafka(left), Bookmark(STREAM, before))
    assert "`reconcile sweep`" in str(refused.value)
    assert "--from-offset" in str(refused.value)
    assert SUSPECTS not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (BY_NAME, "bookmark before is of james: deleted since"),
        (Namespace(bookmark=None, from_time=1, to_time=None), "topic james does not exist"),
    ],
    ids=["name", "time"],
)
def test_a_topic_that_is_not_there_is_named(arguments: Namespace, told: str) -> None:
    with pytest.raises(Misconfigured, match=told):
        asked(Kafka({}), Bookmark(STREAM, {ZERO: 4}), arguments)


def test_a_family_is_replayed_to_what_its_own_stream_has_settled() -> None:
    rights, bookmarks = "mail/rights/repair", MemoryBookmarks(clock=lambda: 1)
    bookmarks.name(Bookmark(STREAM, {ZERO: 4, ONE: 2}), "before")
    bookmarks.record(Bookmark(STREAM, {ZERO: 9, ONE: 9}))
    bookmarks.record(Bookmark(rights, {ZERO: 6, ONE: 1}))
    offsets = AskedOffsets(Kafka(), ("james",), bookmarks, STREAM, frozenset())  # type: ignore[arg-type]
    assert offsets.of(BY_NAME, rights) == Replayable({ZERO: 4}, {ZERO: 6})
    assert offsets.of(BY_NAME, STREAM) == Replayable({ZERO: 4, ONE: 2}, {ZERO: 9, ONE: 9})
