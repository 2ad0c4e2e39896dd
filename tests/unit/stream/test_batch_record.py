"""What is kept of a slice at its end: what is settled, what counters and operators are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import KafkaIds, Offsets, Place
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Micros
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.arrow import WriteTimes
from streaming.pipeline.batch_record import IDLE_RECORD, BatchRecord, StreamPosition
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook
from tests.builders.canaries import TOPIC as CANARIES
from tests.builders.canaries import echo, frontier_watch, of_slice, reached
from tests.builders.failing import unreachable
from tests.builders.found import suspect_at
from tests.builders.rows import NOW, SECOND
from tests.fakes.checkpoints.progress import MemoryBookmarks

STREAM, TOPIC = "james/message/repair", "james.mail.imapuidtable"
BEGIN: dict[Place, int] = {(TOPIC, 0): 30, (TOPIC, 1): 7}
END: dict[Place, int] = {(TOPIC, 0): 40, (TOPIC, 1): 7}
WITH_CANARIES = {**END, (CANARIES, 0): 9}
IDS = KafkaIds("cluster", {TOPIC: "one"})


class Ended:
    """Slices that end, and all that is kept of them."""

    def __init__(self) -> None:
        self.now = NOW
        self.bookmarks = MemoryBookmarks(lambda: self.now)
        self.committed: list[Offsets] = []
        self.metrics = Metrics(CollectorRegistry())
        self.commit: Callable[[Offsets], None] = self.committed.append
        self.recorded = 0
        self.settled = END
        self.position = StreamPosition(STREAM, self.bookmarks, self._ids, self._commit)
        self.lost: list[Micros] = []
        frontier = frontier_watch(self.metrics, lambda at, _why: self.lost.append(at))
        self.record = BatchRecord(
            "message", self.position, frontier, self.metrics, lambda: self.now
        )

    def _ids(self) -> KafkaIds:
        self.recorded += 1
        return IDS

    def _commit(self, offsets: Offsets) -> None:
        self.commit(offsets)

    def end(
        self,
        look: BatchLook | None = None,
        begin: dict[Place, int] | None = None,
        at: Micros = NOW - SECOND,
    ) -> None:
        self.record.ended(look or BatchLook(), Slice(begin or BEGIN, self.settled, at, at))

    def shown(self, metric: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"reconciler_{metric}", labels)


@pytest.fixture
def ended() -> Ended:
    return Ended()


def test_its_bookmark_tells_what_is_settled_of_which_topics(ended: Ended) -> None:
    ended.end()
    kept = ended.bookmarks.newest(STREAM)
    assert kept is not None
    assert (kept.settled, kept.ids) == (END, IDS)
    assert ended.position.recorded_at() == kept.recorded_at


def test_a_stream_without_a_bookmark_was_never_recorded() -> None:
    assert Ended().position.recorded_at() is None


def test_what_is_settled_is_committed_for_operators_once_and_beside_the_slices(
    ended: Ended,
) -> None:
    ended.position.commit_settled()
    ended.end()
    assert ended.committed == []
    ended.position.commit_settled()
    ended.position.commit_settled()
    assert ended.committed == [{TOPIC: {0: 40, 1: 7}}]


def test_a_stream_without_records_says_once_a_minute_that_it_lives(ended: Ended) -> None:
    for after in (0, SECOND, IDLE_RECORD, IDLE_RECORD + 1, IDLE_RECORD + SECOND):
        ended.now = NOW + after
        ended.end(begin=END)
    assert ended.recorded == 2


def test_it_is_settled_before_anything_is_shown_of_it(ended: Ended) -> None:
    ended.record.position = replace(ended.position, ids=unreachable)
    with pytest.raises(Unreachable):
        ended.end(BatchLook(examined=5))
    assert ended.shown("keys_examined_total", family="message") is None
    assert ended.bookmarks.newest(STREAM) is None


def test_a_group_that_cannot_be_told_keeps_nothing_from_being_settled_and_is_told_later(
    ended: Ended,
) -> None:
    ended.commit = unreachable
    ended.end(BatchLook(examined=5))
    ended.position.commit_settled()
    assert ended.bookmarks.newest(STREAM) is not None
    ended.commit = ended.committed.append
    ended.position.commit_settled()
    assert ended.committed == [{TOPIC: {0: 40, 1: 7}}]


def test_operators_see_what_it_found(ended: Ended) -> None:
    suspects = [suspect_at(7, None)] * 2
    bad = Counter({"malformed": 3})
    ended.end(BatchLook(examined=5, unresolved=2, bad=bad, suspects=suspects))
    assert ended.shown("keys_examined_total", family="message") == 5
    assert ended.shown("suspects_total", family="message") == 2
    assert ended.shown("unresolved_keys_total") == 2
    assert ended.shown("dead_letters_total", reason="malformed") == 3
    assert (ended.shown("last_batch_timestamp_seconds", family="message") or 0) > 0


def test_the_age_of_the_oldest_write_is_shown_and_none_is_no_age(ended: Ended) -> None:
    ended.end(BatchLook(times=WriteTimes(NOW - 3 * SECOND)))
    assert ended.shown("window_age_seconds", family="message") == 3
    ended.end()
    assert ended.shown("window_age_seconds", family="message") == 0


def test_the_newest_canary_of_a_node_shows_how_long_capture_takes_and_its_silence(
    ended: Ended,
) -> None:
    ended.settled = WITH_CANARIES
    looked = NOW - SECOND  # all that was read before
    ended.end(BatchLook(echoes=of_slice(echo(looked - 2 * SECOND, 0), echo(looked, 0, "n2"))))
    assert ended.shown("capture_delay_seconds", node="n1") == 2
    assert ended.shown("capture_delay_seconds", node="n2") == 0
    ended.end(at=NOW + 29 * SECOND)
    assert ended.shown("capture_delay_seconds", node="n1") == 32


def test_a_process_that_is_killed_after_any_slice_leaves_no_gap_in_the_canaries(
    ended: Ended,
) -> None:
    """So each bookmark has the canaries of its offsets, however many lanes there are."""
    ended.settled = WITH_CANARIES
    for number in range(1, 5):
        ended.end(BatchLook(echoes=of_slice(echo(10 * number, 10 * number - 10))))
        kept = ended.bookmarks.newest(STREAM)
        assert kept is not None
        again = Ended()
        again.settled = WITH_CANARIES
        again.bookmarks.record(kept)
        again.record.start()
        again.end(BatchLook(echoes=of_slice(echo(10 * number + 10, 10 * number))))
        again.end(at=NOW + 120 * SECOND)
        assert again.lost == []


def test_how_far_canaries_were_heard_is_kept_with_what_is_settled(ended: Ended) -> None:
    """A fresh process notices one that is missing."""
    ended.settled = WITH_CANARIES
    ended.end(BatchLook(echoes=of_slice(echo(10, 5))))
    kept = ended.bookmarks.newest(STREAM)
    assert kept is not None
    assert kept.heard == {("n1", CANARIES, 0): reached(10)}
    again = Ended()
    again.settled = WITH_CANARIES
    again.bookmarks.record(kept)
    again.record.start()
    again.end(BatchLook(echoes=of_slice(echo(30, 20))))
    again.end(at=NOW + 120 * SECOND)
    assert again.lost == [30]
