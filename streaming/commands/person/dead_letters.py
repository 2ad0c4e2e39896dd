"""``reconcile findings --retry-dead-letters``: publishes each record of a dead letter again.

A letter stores the place of its record, not its key, so the record is read from Kafka. If retention
has deleted it, `reconcile sweep` is needed. A consumer group stores the offset up to which letters
were tried, so each is tried once; a record that cannot be decoded makes another letter.
"""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from dataclasses import dataclass

from streaming.pipeline.starting_point import COMPARE
from streaming.settings import KafkaSettings, Settings
from streaming.topics import Record, Watcher, publish_again

AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class LetterOrigin:
    """The place of a letter's record, and why it became a letter."""

    topic: str
    partition: int
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition} offset {self.offset} ({self.reason})"


def retry(settings: Settings, arguments: argparse.Namespace) -> int:
    """Publish the records of all letters since the last call; 1 if a record is gone, else 0."""
    with closing(Watcher(settings.kafka)) as watcher:
        tried, gone = DeadLetters(watcher, settings.kafka, arguments.dry_run).retry()
    if arguments.dry_run:
        print(f"{tried - gone} would be published again, {gone} cannot be; nothing done")
    else:
        told = f"{tried - gone} published again, {gone} cannot be"
        print(told if tried else "no new dead letters")
    return int(bool(gone))


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """The topic of dead letters. A ``dry_run`` publishes nothing and commits no offset."""

    watcher: Watcher
    kafka: KafkaSettings
    dry_run: bool = False

    def retry(self) -> tuple[int, int]:
        """The number of letters that were tried, and of those whose record is gone."""
        topic = self.kafka.dead_letters_topic
        if self.watcher.missing([topic]):
            return 0, 0
        tried = gone = 0
        group = group_of(self.kafka.group)
        done = self.watcher.committed(group).get(topic, {})
        oldest = self.watcher.beginning_offsets([topic])[topic]
        for partition, end in self.watcher.end_offsets([topic])[topic].items():
            at = max(done.get(partition, 0), oldest[partition])
            while at < end:
                upto = min(at + AT_ONCE, end)
                letters = list(self.watcher.records(topic, partition, at, upto))
                gone += sum(not self._published(each) for each in letters)
                tried += len(letters)
                if not self.dry_run:
                    self.watcher.commit(group, {topic: {partition: upto}})
                at = upto
        return tried, gone

    def _published(self, letter: Record) -> bool:
        place = place_of(letter)
        if place is None:
            print(f"gone     dead letter at offset {letter.offset}: it does not say what it was")
            return False
        record = self._record(place)
        if record is None:
            print(f"gone     {place}: Kafka does not hold it any more; {COMPARE}")
            return False
        if not self.dry_run:
            publish_again(self.kafka, [record])
        print(f"{'would be retried' if self.dry_run else 'retried'}  {place}")
        return True

    def _record(self, place: LetterOrigin) -> Record | None:
        """The record of a letter, None if it is gone."""
        if self.watcher.missing([place.topic]):
            return None
        oldest = self.watcher.beginning_offsets([place.topic])[place.topic].get(place.partition, 0)
        end = self.watcher.end_offsets([place.topic])[place.topic].get(place.partition, 0)
        if not oldest <= place.offset < end:
            return None
        after = place.offset + 1
        return next(self.watcher.records(place.topic, place.partition, place.offset, after), None)


def group_of(group: str) -> str:
    """The consumer group that stores the offset up to which letters were tried."""
    return f"{group}.dead-letters"


def place_of(letter: Record) -> LetterOrigin | None:
    """The place that a letter names; None if it is no letter of ours."""
    try:
        told = json.loads(letter.value or b"")
        return LetterOrigin(
            str(told["topic"]), int(told["partition"]), int(told["offset"]), str(told["reason"])
        )
    except (ValueError, KeyError, TypeError):
        return None
