"""From where a stream begins: after what is settled, and not without saying what was lost."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from checkpoints.bookmarks import Bookmark, KafkaIds, Place, flat
from reconcilers.capture.chain import Reached
from reconcilers.capture.frontier import Lane
from reconcilers.words.errors import EventsLost, Unreachable

log = logging.getLogger("reconciler")

COMPARE = "a full comparison is needed: `reconcile sweep`"
"""What is left to do if records are gone."""
"""What is left to do where events are lost."""


class KafkaPositions(Protocol):
    """What Kafka holds; `streaming.topics.Watcher` is the real one."""

    def beginning_offsets(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        """The oldest offset that is still kept, by topic and partition."""

    def end_offsets(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        """The offset after the last record, by topic and partition."""

    def ids(self, topics: Iterable[str]) -> KafkaIds:
        """What tells these topics, and the cluster, from others of the same name."""

    def missing(self, topics: Iterable[str]) -> list[str]:
        """Those of the topics that do not exist."""

    def holds_records(self, place: Place, begin: int, end: int) -> bool:
        """Whether any record is in these offsets of a partition."""


@dataclass(frozen=True, slots=True)
class OtherStream:
    """The stream in the other mode: what it has settled was looked at, and is remembered.

    ``bookmark`` gives its newest; ``suspects`` are the topics that it alone reads. ``heard`` takes
    over up to which canary it heard each lane, where another stream goes on after it.
    """

    bookmark: Callable[[], Bookmark | None]
    suspects: Collection[str]
    heard: Callable[[Mapping[Lane, Reached]], None]

    def continued(self, own: Bookmark | None) -> Bookmark | None:
        """Its newest, and of topics that it does not read what the stream ``own`` has settled.

        None where it has settled nothing.
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

    ``bookmark`` gives its newest. ``events_lost`` is called with the partitions whose events are
    known to be lost, in both modes, which only ``accept_loss`` allows.
    """

    kafka: KafkaPositions
    topics: tuple[str, ...]
    bookmark: Callable[[], Bookmark | None]
    other: OtherStream
    events_lost: Callable[[Collection[Place]], None]
    accept_loss: bool = False
    _ids: KafkaIds | None = None

    def positions(self) -> dict[Place, int]:
        """Every partition's settled offset; its beginning where it has none.

        Where this stream has settled nothing yet, or what follows can no longer be read, it begins
        after what the other one has settled; not once it runs, for its counters would miss that.
        Raises `EventsLost` naming what Kafka no longer holds, or holds under another id.
        """
        ids = self.kafka.ids(self.topics)
        beginnings = self._beginnings()
        known, gone = self._known(beginnings, ids)
        if gone:
            self._lost(gone)
        self._ids = ids  # not before: what is settled until then is of the old ones
        if known is None:
            return beginnings
        return {
            place: beginning if place in gone else known.settled.get(place, beginning)
            for place, beginning in beginnings.items()
        }

    def has_lost(self) -> bool:
        """Whether what this stream is to read next can no longer be read: asked after a death."""
        known = self.bookmark()
        if known is None:
            return False
        gone = self._gone(known, self._beginnings(), self.kafka.ids(self.topics))
        return next(gone, None) is not None

    def _beginnings(self) -> dict[Place, int]:
        beginnings = self.kafka.beginning_offsets(self.topics)
        empty = [topic for topic in self.topics if not beginnings.get(topic)]
        if empty:
            raise Unreachable(f"Kafka tells no partitions of {', '.join(empty)} right now")
        return flat(beginnings)

    def ids(self) -> KafkaIds:
        """Those that the topics had when the stream began, as far as they are known."""
        return self._ids or KafkaIds()

    def check(self) -> None:
        """Ask whether the topics are still those that the stream began with.

        Raises `EventsLost` where one has been made anew since: what is settled is of another, and
        the stream must begin again (`positions` knows whether a loss is accepted).
        """
        now = self.kafka.ids(self.topics)
        began = self._ids or now
        anew = other_than(began, now)
        if anew:
            raise EventsLost(f"made anew while they were read: {', '.join(anew)}")
        self._ids = KafkaIds(began.cluster or now.cluster, {**now.topics, **began.topics})

    def _known(
        self, beginnings: Mapping[Place, int], ids: KafkaIds
    ) -> tuple[Bookmark | None, Mapping[Place, str]]:
        """After what the stream goes on, and what was not settled there and is gone, with why."""
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
            log.warning("Kafka no longer holds the first events: what they told is not known")
            self.events_lost(beginnings.keys())
        return own, gone

    def _gone(
        self, known: Bookmark, beginnings: Mapping[Place, int], ids: KafkaIds
    ) -> Iterator[tuple[Place, str]]:
        """What was not settled and cannot be read any more, by partition, and why."""
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
                yield place, f"{topic}/{number} from {settled} on: the topic was made anew"
            elif settled < beginnings[place]:
                last = beginnings[place] - 1
                yield place, f"{topic}/{number} {settled}–{last}: Kafka's retention has passed"
            elif settled > ends.get(place, settled):
                yield place, f"{topic}/{number} from {ends[place]} on: it ends before {settled}"

    def _left_behind(self, place: Place, settled: int) -> Iterator[tuple[Place, str]]:
        """A partition that this stream no longer reads, with records that it never read."""
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


def other_than(before: KafkaIds, now: KafkaIds) -> list[str]:
    """The topics, and the cluster, that have another id now; what is not known is no other."""
    topics = (topic for topic, each in now.topics.items() if before.topics.get(topic, each) != each)
    cluster = [now.cluster] if before.cluster and now.cluster not in {"", before.cluster} else []
    return [*sorted(topics), *cluster]
