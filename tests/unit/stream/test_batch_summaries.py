"""What a batch tells the tallies: how many changes have come out, and how far canaries have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.bookmarks import KafkaIds, Place
from reconcilers.capture.frontier import Echo
from reconcilers.words.errors import Unreachable
from reconcilers.words.model import Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming.counters.batch_summary import BatchSummary
from streaming.counters.mailbox_changes import MailboxChanges
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.batch_record import BatchRecord, BatchSummaries, StreamPosition
from streaming.pipeline.held_looks import HeldLooks
from streaming.pipeline.open_findings import OpenFindings
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook
from tests.builders.canaries import TOPIC, echo, frontier_watch, of_slice
from tests.builders.failing import unreachable
from tests.builders.rows import DELAY, FAMILY, MAILBOX, NOW, SLOT
from tests.fakes.checkpoints.memory import MemoryJournal
from tests.fakes.checkpoints.progress import MemoryBookmarks
from tests.unit.stream.test_batches import held

ONE_PARTITION: Mapping[Place, int] = {(TOPIC, 0): 1}
HELD = replace(held(), slot=SLOT)


class Told:
    """The record of batches, and what the counters hear of each."""

    def __init__(self) -> None:
        self.came: list[BatchSummary] = []
        self.trouble: Waiting | None = None
        metrics = Metrics(CollectorRegistry())
        paced = HeldLooks("messages", None)
        self.findings = OpenFindings(FAMILY, MemoryJournal(), metrics, "message", DELAY, paced)
        summaries = BatchSummaries(
            take=self.came.append,
            paused_because=lambda: self.trouble,
            open_messages=self.findings.messages,
        )
        position = StreamPosition("message", MemoryBookmarks(), KafkaIds, lambda offsets: None)
        self.record = BatchRecord(
            FAMILY.name, position, frontier_watch(metrics), metrics, lambda: NOW, summaries
        )

    def end(
        self, look: BatchLook | None = None, end: Mapping[Place, int] = ONE_PARTITION
    ) -> BatchSummary:
        self.record.ended(look or BatchLook(), Slice(end, end, NOW, NOW - DELAY))
        return self.came[-1]


@pytest.fixture
def told() -> Told:
    return Told()


def test_counters_are_told_before_the_slice_is_settled(told: Told) -> None:
    """Told twice only widens an interval; what is settled is never told again."""
    told.record.position = replace(told.record.position, ids=unreachable)
    piece = Slice({("topic", 0): 0}, {("topic", 0): 5}, NOW, NOW)
    with pytest.raises(Unreachable):
        told.record.ended(BatchLook(changes=MailboxChanges.of({MAILBOX: 3})), piece)
    assert [each.changes for each in told.came] == [{MAILBOX: 3}]


def test_the_changes_of_each_mailbox_are_told(told: Told) -> None:
    changes = MailboxChanges.of({MAILBOX: 3, UUID(int=1): 1})
    assert told.end(BatchLook(changes=changes)).changes == changes


def test_messages_with_an_open_finding_are_told_and_of_an_index_not(
    told: Told,
) -> None:
    other = Slot(UUID(int=1), 5)
    told.findings.index.keep(HELD)
    told.findings.index.keep(replace(HELD, projection="deleted_uids", slot=other))
    assert list(told.end().open_messages) == [MAILBOX]


def test_why_nothing_may_be_repaired_is_told(told: Told) -> None:
    assert told.end().paused_because is None
    told.trouble = Waiting(Wait.CLOCKS, "the clock of 10.0.0.1 differs")
    assert told.end().paused_because == told.trouble


# --- canaries -------------------------------------------------------------------------------------


def heard(*echoes: Echo) -> BatchLook:
    return BatchLook(echoes=of_slice(*echoes))


def test_how_far_canaries_have_come_is_told(told: Told) -> None:
    assert told.end(heard(echo(10, 0))).proven == {"n1": 0}
    assert told.end(heard(echo(20, 10))).proven == {"n1": 10}
    assert told.end().proven == {"n1": 10}


def test_a_partition_without_canaries_proves_nothing(told: Told) -> None:
    came = told.end(heard(echo(10, 0), echo(20, 10)), end={(TOPIC, 0): 5, (TOPIC, 1): 5})
    assert came.proven == {"n1": -1}


def test_partitions_of_other_topics_need_no_canary(told: Told) -> None:
    places = {(TOPIC, 0): 5, ("reconciler.suspects", 0): 5}
    assert told.end(heard(echo(10, 0), echo(20, 10)), end=places).proven == {"n1": 10}
