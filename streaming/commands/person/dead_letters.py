"""Dead letters, tried again: the record itself, as Kafka still holds it, is published once more.

A letter keeps where the record stood, not its key, so the record is read at its place. One whose
place is gone by retention cannot come back: then `reconcile sweep` is needed. A consumer group of
its own remembers up to where letters were tried, so each is tried once; a record that cannot be
decoded again makes another letter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from streaming.pipeline.starting import COMPARE
from streaming.settings import KafkaSettings, Settings
from streaming.topics import Record, Watcher, publish_again

AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Place:
    """Where the record of a letter stood, and why it became one."""

    topic: str
    partition: int
    offset: int
    reason: str

    def __str__(self) -> str:
        """As it is printed."""
        return f"{self.topic}/{self.partition} offset {self.offset} ({self.reason})"


def retry(settings: Settings) -> int:
    """Publish again what the letters since the last call stand for; returns 1 if some is gone."""
    tried, gone = _through(settings, DeadLetterRetry)
    print(f"{tried - gone} published again, {gone} cannot be" if tried else "no new dead letters")
    return int(bool(gone))


def show(settings: Settings) -> int:
    """Print what `retry` would do, and do nothing; returns 1 if some is gone."""
    tried, gone = _through(settings, DeadLetterShow)
    print(f"{tried - gone} would be published again, {gone} cannot be; nothing done")
    return int(bool(gone))


def _through(settings: Settings, way: type[DeadLetterRetry]) -> tuple[int, int]:
    watcher = Watcher(settings.kafka)
    try:
        return way(watcher, settings.kafka).all()
    finally:
        watcher.close()


@dataclass(frozen=True, slots=True)
class DeadLetterRetry:
    """One call's way through the topic of dead letters."""

    watcher: Watcher
    kafka: KafkaSettings

    def all(self) -> tuple[int, int]:
        """How many letters were tried, and of how many the record is gone."""
        topic = self.kafka.dead_letters_topic
        if self.watcher.missing([topic]):
            return 0, 0
        tried = gone = 0
        done = self.watcher.committed(group_of(self.kafka.group)).get(topic, {})
        oldest = self.watcher.beginning_offsets([topic])[topic]
        for partition, end in self.watcher.end_offsets([topic])[topic].items():
            at = max(done.get(partition, 0), oldest[partition])
            while at < end:
                upto = min(at + AT_ONCE, end)
                letters = list(self.watcher.records(topic, partition, at, upto))
                gone += sum(not self._published(each) for each in letters)
                tried += len(letters)
                self._tried(topic, partition, upto)
                at = upto
        return tried, gone

    def _tried(self, topic: str, partition: int, upto: int) -> None:
        """Those below are not tried again."""
        self.watcher.commit(group_of(self.kafka.group), {topic: {partition: upto}})

    def _published(self, letter: Record) -> bool:
        place = place_of(letter)
        if place is None:
            print(f"gone     dead letter at offset {letter.offset}: it does not say what it was")
            return False
        record = self._record(place)
        if record is None:
            print(f"gone     {place}: Kafka does not hold it any more; {COMPARE}")
            return False
        self._publish([record], place)
        return True

    def _publish(self, records: Sequence[Record], place: Place) -> None:
        publish_again(self.kafka, records)
        print(f"retried  {place}")

    def _record(self, place: Place) -> Record | None:
        """The record of a letter, None when it is gone."""
        if self.watcher.missing([place.topic]):
            return None
        oldest = self.watcher.beginning_offsets([place.topic])[place.topic].get(place.partition, 0)
        end = self.watcher.end_offsets([place.topic])[place.topic].get(place.partition, 0)
        if not oldest <= place.offset < end:
            return None
        after = place.offset + 1
        return next(self.watcher.records(place.topic, place.partition, place.offset, after), None)


class DeadLetterShow(DeadLetterRetry):
    """The same way through it, and nothing is published or remembered."""

    def _tried(self, topic: str, partition: int, upto: int) -> None:
        pass

    def _publish(self, _records: Sequence[Record], place: Place) -> None:
        print(f"would be retried  {place}")


def group_of(group: str) -> str:
    """The consumer group that remembers up to where letters were tried."""
    return f"{group}.dead-letters"


def place_of(letter: Record) -> Place | None:
    """What a letter says of its record, None when it is no letter of ours."""
    try:
        told = json.loads(letter.value or b"")
        return Place(
            str(told["topic"]), int(told["partition"]), int(told["offset"]), str(told["reason"])
        )
    except (ValueError, KeyError, TypeError):
        return None
