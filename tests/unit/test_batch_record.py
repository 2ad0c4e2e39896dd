"""What is kept of a batch at its end: where it stood, how far it read, what operators see."""

from __future__ import annotations

from collections import Counter

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import Offsets
from checkpoints.directory import Planned
from checkpoints.memory import MemoryBookmarks
from reconcilers.model import Micros
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.batch_record import BatchPlace, BatchRecord, StreamPosition
from streaming.pipeline.worker import BatchLook
from tests.builders.rows import DELAY, NOW, SECOND

STREAM, TOPIC = "james/message/repair", "james.mail.imapuidtable"
END = {TOPIC: {0: 40, 1: 7}}


class Ended:
    """Batches that end, and all that is kept of them."""

    def __init__(self) -> None:
        self.bookmarks = MemoryBookmarks(lambda: NOW)
        self.committed: list[Offsets] = []
        self.metrics = Metrics(CollectorRegistry())
        self.position = StreamPosition(STREAM, self.bookmarks, self.committed.append)
        self.record = BatchRecord("message", self.position, self.metrics, lambda: NOW)

    def end(self, look: BatchLook | None = None, batch_id: int = 3) -> BatchPlace:
        plan = Planned(NOW - SECOND, NOW - DELAY, dict(END))
        place = BatchPlace("7d1f", batch_id, {TOPIC: {0: 30}}, plan)
        self.record.ended(look or BatchLook(), place)
        return place

    def shown(self, metric: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"reconciler_{metric}", labels)


def test_its_bookmark_tells_where_it_began_and_ended_and_under_which_watermark() -> None:
    ended = Ended()
    ended.end()
    (kept,) = ended.bookmarks.recent(STREAM)
    assert (kept.checkpoint, kept.batch_id) == ("7d1f", 3)
    assert (kept.batch_time, kept.watermark) == (NOW - SECOND, NOW - DELAY)
    assert (kept.start, kept.end) == ({TOPIC: {0: 30}}, END)
    assert ended.position.recent() == [kept]
    assert ended.position.recorded_at() == kept.recorded_at


def test_a_stream_without_a_bookmark_was_never_recorded() -> None:
    assert Ended().position.recorded_at() is None


def test_what_it_read_is_committed_and_remembered() -> None:
    ended = Ended()
    assert ended.position.read_up_to == {}
    ended.end()
    assert ended.committed == [END]
    assert ended.position.read_up_to == END


def test_it_is_recorded_before_anything_is_shown_of_it() -> None:
    ended = Ended()

    def fails(_offsets: Offsets) -> None:
        raise OSError("no broker")

    ended.position.commit = fails
    with pytest.raises(OSError, match="no broker"):
        ended.end(BatchLook(examined=5))
    assert ended.shown("keys_examined_total", family="message") is None
    assert len(ended.bookmarks.recent(STREAM)) == 1


def test_operators_see_what_it_found() -> None:
    ended = Ended()
    ended.end(BatchLook(examined=5, unresolved=2, bad=Counter({"malformed": 3})))
    assert ended.shown("keys_examined_total", family="message") == 5
    assert ended.shown("unresolved_keys_total") == 2
    assert ended.shown("dead_letters_total", reason="malformed") == 3
    assert (ended.shown("last_batch_timestamp_seconds", family="message") or 0) > 0


def test_the_age_of_the_oldest_write_is_shown_and_none_is_no_age() -> None:
    ended = Ended()
    ended.end(BatchLook(oldest=NOW - 3 * SECOND))
    assert ended.shown("window_age_seconds") == 3
    ended.end()
    assert ended.shown("window_age_seconds") == 0


def captured(at: Micros, within: Micros) -> BatchLook:
    return BatchLook(freshest=(at, within))


def test_the_capture_of_the_newest_write_is_shown_and_that_of_an_older_one_is_not() -> None:
    ended = Ended()
    ended.end(captured(NOW, 2 * SECOND))
    assert ended.shown("capture_delay_seconds") == 2
    ended.end(captured(NOW - 1, 60 * SECOND))
    ended.end(captured(NOW, 60 * SECOND))
    assert ended.shown("capture_delay_seconds") == 2


def test_a_batch_has_one_name_however_often_it_is_executed() -> None:
    ended = Ended()
    assert ended.end().name == ended.end().name == "7d1f/3"
    assert ended.end(batch_id=4).name != "7d1f/3"
