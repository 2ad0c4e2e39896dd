"""Where a stream begins: after the settled offsets, and never past lost records in silence."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from checkpoints.bookmarks import Bookmark, KafkaIds, Offsets, Place, flat
from reconcilers.capture.chain import Reached
from reconcilers.capture.frontier import Lane
from reconcilers.words.errors import EventsLost, Unreachable

log = logging.getLogger("reconciler")

COMPARE = "a full comparison is needed: `reconcile sweep`"
"""What a person does after records are lost."""


class KafkaPositions(Protocol):
    """Positions in Kafka; `streaming.topics.Watcher` is the real one."""

    def beginning_offsets(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        """The oldest offset that is still kept, by topic and partition."""

    def end_offsets(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        """The offset after the last record, by topic and partition."""

    def ids(self, topics: Iterable[str]) -> KafkaIds:
        """The ids of these topics and of the cluster."""

    def missing(self, topics: Iterable[str]) -> list[str]:
        """Those of the topics that do not exist."""

    def holds_records(self, place: Place, begin: int, end: int) -> bool:
        """Whether any record is in these offsets of a partition."""


@dataclass(frozen=True, slots=True)
class OtherStream:
    """The stream in the other mode. What it has settled was looked at.

    ``bookmark`` returns its newest bookmark; ``suspects`` are the topics that only it reads.
    ``heard`` takes over its position in each lane, if this stream continues after it.
    """

    bookmark: Callable[[], Bookmark | None]
    suspects: Collection[str]
    heard: Callable[[Mapping[Lane, Reached]], None]

    def continued(self, own: Bookmark | None) -> Bookmark | None:
        """Its newest bookmark, with the positions of ``own`` for topics that it does not read.

        None if it has settled nothing.
        """
        newest = self.bookmark()
        if newest is None:
            return None
        own = own or Bookmark("", {})
        events = {
            place: at for place, at in newest.settled.items() if place[0] not in self.suspects
        }
        ids = KafkaIds(newest.ids.cluster, {**own.ids.topics, **newest.ids.topics})
        return replace(newest, settled={**own.settled, **events}, ids=ids)


@dataclass(slots=True)
class StartingPoint:
    """Finds where one stream begins; ``topics`` are all that it reads.

    ``bookmark`` returns its newest bookmark. ``events_lost`` is called with the partitions whose
    events are lost in both modes. ``accept_loss`` is needed to start despite a loss.
    """

    kafka: KafkaPositions
    topics: tuple[str, ...]
    bookmark: Callable[[], Bookmark | None]
    other: OtherStream
    events_lost: Callable[[Collection[Place]], None]
    accept_loss: bool = False
    _ids: KafkaIds | None = None

    def positions(self) -> dict[Place, int]:
        """The settled offset of every partition, or its beginning if it has none.

        At its start, a stream that has settled nothing, or cannot read what follows, continues
        after the other stream. It does not do so later: its counters would miss the difference.
        Raises `EventsLost` with the records that Kafka no longer holds, or holds under another id.
        """
        ids = self.kafka.ids(self.topics)
        beginnings = self._beginnings()
        known, gone = self._known(beginnings, ids)
        if gone:
            self._lost(gone)
        self._ids = ids  # not earlier: offsets settled until now are of the old topics
        if known is None:
            return beginnings
        return {
            place: beginning if place in gone else known.settled.get(place, beginning)
            for place, beginning in beginnings.items()
        }

    def has_lost(self) -> bool:
        """Whether records to read next are lost; asked after a query died."""
        known = self.bookmark()
        if known is None:
            return False
        gone = self._gone(known, self._beginnings(), self.kafka.ids(self.topics))
        return next(gone, None) is not None

    def _beginnings(self) -> dict[Place, int]:
        return flat(of_all(self.topics, self.kafka.beginning_offsets(self.topics)))

    def ids(self) -> KafkaIds:
        """The ids that the topics had when the stream began, as far as they are known."""
        return self._ids or KafkaIds()

    def check(self) -> None:
        """Check that the topics are still those with which the stream began.

        Raises `EventsLost` if one was recreated: settled offsets are those of the old topic, and
        the stream must begin again (`positions` applies ``accept_loss``).
        """
        now = self.kafka.ids(self.topics)
        began = self._ids or now
        anew = other_than(began, now)
        if anew:
            raise EventsLost(f"recreated while they were read: {', '.join(anew)}")
        self._ids = KafkaIds(began.cluster or now.cluster, {**now.topics, **began.topics})

    def _known(
        self, beginnings: Mapping[Place, int], ids: KafkaIds
    ) -> tuple[Bookmark | None, Mapping[Place, str]]:
        """The bookmark to continue after, and its lost unsettled records with the reasons."""
        own = self.bookmark()
        gone = dict(self._gone(own, beginnings, ids)) if own is not None else {}
        if own is not None and not gone:
            return own, gone
        other = self.other.continued(own) if self._ids is None else None
        if other is not None:
            others = dict(self._gone(other, beginnings, ids))
            if own is None or not others:
                why = "; ".join(gone.values()) or "this one has settled nothing yet"
                log.warning("going on after what the stream in the other mode has settled: %s", why)
                self.other.heard(other.heard)
                return other, others
        if own is None and any(beginnings.values()):
            log.warning("Kafka no longer holds the first events: their changes are not known")
            self.events_lost(beginnings.keys())
        return own, gone

    def _gone(
        self, known: Bookmark, beginnings: Mapping[Place, int], ids: KafkaIds
    ) -> Iterator[tuple[Place, str]]:
        """The unsettled ranges that cannot be read any more, by partition, with the reason."""
        ends = flat(self.kafka.end_offsets(self.topics))
        anew = other_than(known.ids, ids)
        topics = {topic for topic, _ in known.settled}
        new = {place: 0 for place in beginnings if place[0] in topics}  # partitions added since
        for place, settled in sorted({**new, **known.settled}.items()):
            topic, number = place
            if place not in beginnings:
                yield from self._left_behind(place, settled)
            elif ids.cluster in anew:
                yield place, f"{topic}/{number} from {settled} on: this is another Kafka cluster"
            elif topic in anew:
                yield place, f"{topic}/{number} from {settled} on: the topic was recreated"
            elif settled < beginnings[place]:
                last = beginnings[place] - 1
                yield place, f"{topic}/{number} {settled}–{last}: Kafka's retention has passed"
            elif settled > ends.get(place, settled):
                yield place, f"{topic}/{number} from {ends[place]} on: it ends before {settled}"

    def _left_behind(self, place: Place, settled: int) -> Iterator[tuple[Place, str]]:
        """A partition that this stream no longer reads, if it has unread records."""
        topic, number = place
        if topic in self.topics:
            yield place, f"{topic}/{number}: the partition is gone, {settled} were settled"
        elif self.kafka.missing([topic]):
            yield place, f"{topic}/{number} from {settled} on: the topic is gone"
        else:
            end = self.kafka.end_offsets([topic]).get(topic, {}).get(number, settled)
            if self.kafka.holds_records(place, settled, end):
                why = "the topic is no longer read (kafka.topic_prefix)"
                yield place, f"{topic}/{number} {settled}–{end - 1}: {why}"

    def _lost(self, gone: Mapping[Place, str]) -> None:
        lost = f"unread records are lost: {'; '.join(gone.values())}"
        if not self.accept_loss:
            raise EventsLost(f"{lost}; go on with --accept-loss, then {COMPARE}")
        log.error("%s; accepted: %s", lost, COMPARE)
        self.events_lost(gone.keys())


def of_all(topics: Iterable[str], offsets: Offsets) -> Offsets:
    """The offsets, if each topic has some. Raises `Unreachable`."""
    empty = [topic for topic in topics if not offsets.get(topic)]
    if empty:
        raise Unreachable(f"Kafka reports no partitions of {', '.join(empty)} right now")
    return offsets


def other_than(before: KafkaIds, now: KafkaIds) -> list[str]:
    """The topics, and the cluster, whose id is another one now; an unknown id is not another."""
    topics = (topic for topic, each in now.topics.items() if before.topics.get(topic, each) != each)
    cluster = [now.cluster] if before.cluster and now.cluster not in {"", before.cluster} else []
    return [*sorted(topics), *cluster]
