"""Topics of before version 0.2: read to their end, then deleted.

Agents wrote one for each table, and every installation published its keys to the same one. They are
read like any other as long as they exist. An operator deletes them when nobody writes to them any
more. What such a topic held cannot be asked for then, so it is noted while it is there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from checkpoints.bookmarks import Bookmark, Bookmarks, Place, flat
from reconcilers.words.errors import Retryable
from streaming.pipeline.starting import KafkaPositions
from streaming.topics import SHARED_SUSPECTS

log = logging.getLogger("reconciler")

READ_TO_END = "topics of single tables, read to their end"
"""Names the bookmark that notes them, and what was settled of them then."""


@dataclass(frozen=True, slots=True)
class TableTopics:
    """Those of one stream: the shared one, and those named by ``prefix`` and a dot."""

    kafka: KafkaPositions
    bookmarks: Bookmarks
    stream: str
    prefix: str

    def forget_deleted(self) -> None:
        """Take out of what is settled the topics that are gone and were read to their end.

        A topic that is gone and was not stays in: the start says what is lost. Raises `Retryable`.
        """
        newest = self.bookmarks.newest(self.stream)
        if newest is None:
            return
        noted = self._noted()
        of_topic = self._of_tables(newest)
        done = {
            topic
            for topic in self.kafka.missing(of_topic)
            if all(noted.get(place) == newest.settled[place] for place in of_topic[topic])
        }
        if done:
            log.info("deleted, and read to their end before: %s", ", ".join(sorted(done)))
            left = {place: at for place, at in newest.settled.items() if place[0] not in done}
            self.bookmarks.record(replace(newest, settled=left))

    def note_ends(self) -> None:
        """Note which of them are read to their end now. What cannot be asked now is not noted.

        Behind the last record there may be offsets without any, as those of transactions' markers.
        """
        try:
            newest = self.bookmarks.newest(self.stream)
            of_topic = {} if newest is None else self._of_tables(newest)
            if newest is not None and of_topic:
                self._note(newest, of_topic)
        except Retryable as failed:
            log.warning("not noted which topics are read to their end: %s", failed)

    def _note(self, newest: Bookmark, of_topic: dict[str, list[Place]]) -> None:
        gone = set(self.kafka.missing(of_topic))
        ends = flat(self.kafka.end_offsets([each for each in of_topic if each not in gone]))
        settled = newest.settled
        read = {
            place: settled[place]
            for place, end in ends.items()
            if place in settled and not self.kafka.holds_records(place, settled[place], end)
        }
        before = self._noted()
        now = {place: end for place, end in before.items() if place[0] in gone} | read
        if now != before:
            self.bookmarks.name(Bookmark(self.stream, now, newest.ids), READ_TO_END)

    def _noted(self) -> dict[Place, int]:
        noted = self.bookmarks.named(self.stream, READ_TO_END)
        return {} if noted is None else dict(noted.settled)

    def _of_tables(self, bookmark: Bookmark) -> dict[str, list[Place]]:
        found: dict[str, list[Place]] = {}
        for place in bookmark.settled:
            if place[0].startswith(f"{self.prefix}.") or place[0] in SHARED_SUSPECTS.values():
                found.setdefault(place[0], []).append(place)
        return found
