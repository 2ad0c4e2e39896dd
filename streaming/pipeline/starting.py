"""From where a query reads: where its checkpoint stands, or where a fresh one loses nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from checkpoints.bookmarks import Bookmark, Offsets, safe_start
from reconcilers.errors import EventsLost
from reconcilers.model import Micros

log = logging.getLogger("reconciler")

COMPARE = "a full comparison is needed: James's own consistency task"
"""What is left to do where events are lost."""


class TopicBeginnings(Protocol):
    """What Kafka still holds; `streaming.topics.Watcher` is the real one."""

    def beginning_offsets(self, topics: Iterable[str]) -> Mapping[str, Mapping[int, int]]:
        """The oldest offset that is still kept, by topic and partition."""


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """Finds the offsets of one stream's topics; ``window`` is W (µs).

    ``events_lost`` is told when events are known to be lost, which only ``accept_loss`` allows.
    """

    watcher: TopicBeginnings
    topics: tuple[str, ...]
    window: Micros
    bookmarks: Callable[[], Sequence[Bookmark]]
    events_lost: Callable[[], None]
    accept_loss: bool = False

    def bookmarked(self) -> Offsets | None:
        """Where a fresh checkpoint loses nothing; None when no bookmark tells."""
        return safe_start(self.bookmarks(), self.window)

    def kept(self, bookmarked: Offsets | None) -> Offsets:
        """Those offsets, without the partitions that must be read from their beginning.

        Raises `EventsLost` as `check_retention` does.
        """
        if bookmarked is not None:
            self.check_retention(bookmarked)
        elif self._begins_late():
            log.warning("Kafka no longer holds the first events: what they told is not known")
            self.events_lost()
        return self._still_kept(bookmarked or {})

    def _begins_late(self) -> bool:
        """Whether any topic has lost its first records: nobody may have read them."""
        beginnings = self.watcher.beginning_offsets(self.topics).values()
        return any(beginning > 0 for each in beginnings for beginning in each.values())

    def _still_kept(self, offsets: Offsets) -> Offsets:
        kept: dict[str, dict[int, int]] = {}
        for topic, partitions in self.watcher.beginning_offsets(self.topics).items():
            for partition, beginning in partitions.items():
                wanted = offsets.get(topic, {}).get(partition, 0)
                if wanted > beginning:
                    kept.setdefault(topic, {})[partition] = wanted
        return kept

    def check_retention(self, offsets: Offsets) -> None:
        """Raises `EventsLost` naming the range that Kafka no longer holds."""
        gone = [
            f"{topic}/{partition} {offsets[topic][partition]}–{beginning - 1}"
            for topic, partitions in self.watcher.beginning_offsets(self.topics).items()
            for partition, beginning in partitions.items()
            if beginning > offsets.get(topic, {}).get(partition, beginning)
        ]
        if not gone:
            return
        lost = f"Kafka's retention has passed over unread records: {', '.join(gone)}"
        if not self.accept_loss:
            raise EventsLost(f"{lost}; go on with --accept-loss, then {COMPARE}")
        log.error("%s; accepted: %s", lost, COMPARE)
        self.events_lost()
