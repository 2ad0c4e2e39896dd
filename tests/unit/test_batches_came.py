"""What a batch tells the tallies: what has come out, how many changes, how late they were."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import KafkaIds
from checkpoints.memory import MemoryBookmarks, MemoryJournal
from reconcilers.errors import Unreachable
from reconcilers.model import Micros, Slot
from streaming.counters.batch_summary import BatchSummary
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.batch_record import BatchRecord, BatchSummaries, StreamPosition
from streaming.pipeline.open_findings import OpenFindings
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook
from tests.builders.rows import DELAY, FAMILY, MAILBOX, NOW, SECOND, SLOT
from tests.unit.test_batches import held

HELD = replace(held(), slot=SLOT)


class Told:
    """The record of batches, and what the counters hear of each."""

    def __init__(self) -> None:
        self.came: list[BatchSummary] = []
        self.trouble: str | None = None
        self.lag: Micros = 0
        metrics = Metrics(CollectorRegistry())
        self.findings = OpenFindings(FAMILY, MemoryJournal(), metrics, "message", DELAY)
        summaries = BatchSummaries(
            take=self.came.append,
            lag=lambda: self.lag,
            paused_because=lambda: self.trouble,
            mailboxes=self.findings.mailboxes,
        )
        position = StreamPosition("message", MemoryBookmarks(), KafkaIds, lambda offsets: None)
        self.record = BatchRecord(FAMILY.name, position, metrics, lambda: NOW, summaries)

    def end(self, look: BatchLook | None = None, at: Micros = NOW) -> BatchSummary:
        self.record.began(at)
        self.record.ended(look or BatchLook(), Slice({}, {}, at, at - DELAY))
        return self.came[-1]


@pytest.fixture
def told() -> Told:
    return Told()


def test_what_was_read_before_the_slices_last_window_ended_has_come_out(told: Told) -> None:
    assert told.end().settled_up_to == NOW - DELAY


def test_counters_are_told_before_the_slice_is_settled(told: Told) -> None:
    """Told twice only widens an interval; what is settled is never told again."""

    def unreachable() -> KafkaIds:
        raise Unreachable("no broker")

    told.record.position = replace(told.record.position, ids=unreachable)
    piece = Slice({("topic", 0): 0}, {("topic", 0): 5}, NOW, NOW)
    with pytest.raises(Unreachable):
        told.record.ended(BatchLook(changes=Counter({MAILBOX: 3})), piece)
    assert [each.changes for each in told.came] == [{MAILBOX: 3}]


def test_the_changes_of_each_mailbox_are_told(told: Told) -> None:
    changes = Counter({MAILBOX: 3, UUID(int=1): 1})
    assert told.end(BatchLook(changes=changes)).changes == changes


def test_mailboxes_with_an_open_finding_of_a_message_are_told_and_of_an_index_not(
    told: Told,
) -> None:
    other = Slot(UUID(int=1), 5)
    told.findings.keep(HELD)
    told.findings.keep(replace(HELD, projection="deleted_uids", slot=other))
    assert told.end().mailboxes_with_findings == {MAILBOX}


def test_why_nothing_may_be_repaired_is_told(told: Told) -> None:
    assert told.end().paused_because is None
    told.trouble = "the clock of 10.0.0.1 differs"
    assert told.end().paused_because == "the clock of 10.0.0.1 differs"


# --- how late -------------------------------------------------------------------------------------


def test_a_stream_that_keeps_up_is_late_by_half_a_batch_at_most(told: Told) -> None:
    told.end()
    assert told.end(at=NOW + 2 * SECOND).lag == SECOND


def test_the_lag_behind_kafka_counts(told: Told) -> None:
    told.lag = 12 * SECOND
    assert told.end().lag == 12 * SECOND


def test_the_capture_of_the_newest_change_counts(told: Told) -> None:
    assert told.end(BatchLook(freshest=(NOW, 8 * SECOND))).lag == 8 * SECOND


def test_the_capture_of_an_older_change_says_nothing_of_now(told: Told) -> None:
    told.end(BatchLook(freshest=(NOW, SECOND)))
    older = BatchLook(freshest=(NOW - SECOND, 60 * SECOND))
    assert told.end(older).lag == 0


def test_changes_that_waited_while_no_batch_read_them_are_late(told: Told) -> None:
    """A query that died and was restarted: the lag was not measured meanwhile."""
    told.end()
    assert told.end(at=NOW + 60 * SECOND).lag == 30 * SECOND
    assert told.end(at=NOW + 61 * SECOND).lag == SECOND // 2


def test_capture_and_waiting_count_together(told: Told) -> None:
    told.end()
    look = BatchLook(freshest=(NOW, 6 * SECOND))
    assert told.end(look, at=NOW + 10 * SECOND).lag == 8 * SECOND


def test_a_batch_that_is_executed_again_is_no_later(told: Told) -> None:
    told.end()
    assert told.end().lag == 0


def test_what_the_first_batch_reads_has_waited_since_the_process_began(told: Told) -> None:
    told.record.began(NOW)
    assert told.end(at=NOW + 40 * SECOND).lag == 20 * SECOND
