"""Rows that the truth lost without a delete: of more than a minute's removals one finding tells."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.memory import MemoryJournal
from reconcilers.absent import truth_lost_rows
from reconcilers.finding import Action, Finding, State
from reconcilers.model import ACCEPTABLE, Kind, Slot
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.held_looks import HeldLooks
from streaming.pipeline.open_finding import opened
from streaming.pipeline.open_findings import OpenFindings
from streaming.steps.outcome import Outcome
from tests.builders.rows import DELAY, FAMILY, LONG_AGO, MAILBOX, NOW, SECOND
from tests.property.mail import time_uuid

MOST = 3
OTHER_MAILBOX = time_uuid(LONG_AGO, 9)
DAY = 24 * 3600 * SECOND


def absent(uid: int, mailbox: object = MAILBOX, state: State = State.REPORTED) -> Finding:
    return Finding(
        family="message",
        projection="messages",
        slot=Slot(mailbox, uid),  # type: ignore[arg-type]
        source=str(time_uuid(NOW - uid * DAY, 1)),
        kind=Kind.ABSENT_WITHOUT_DELETE,
        state=state,
        sentence=f"the truth had UID {uid}",
        found_at=LONG_AGO,
    )


FEW = [absent(uid) for uid in range(1, MOST + 1)]
MANY = [*FEW, absent(9, OTHER_MAILBOX)]


def test_up_to_the_limit_each_row_speaks_for_itself() -> None:
    assert truth_lost_rows(FAMILY, list(map(opened, FEW)), MOST, NOW) is None


def test_above_it_one_finding_names_counts_and_the_time_span() -> None:
    found = truth_lost_rows(FAMILY, list(map(opened, MANY)), MOST, NOW)
    assert found is not None
    assert (found.kind, found.state) == (Kind.TRUTH_LOST_ROWS, State.REPORTED)
    assert found.kind not in ACCEPTABLE
    assert found.next_look is None
    assert found.sentence == (
        "imapuidtable has lost 4 rows of 2 mailboxes without a delete (messages made from"
        " 2027-01-06 08:00 to 2027-01-14 08:00 UTC): was it restored from an older copy? Nothing of"
        " it is removed unless a person accepts it"
    )


@pytest.mark.parametrize("source", [None, "", "no uuid", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"])
def test_where_no_message_tells_its_time_no_span_is_named(source: str | None) -> None:
    absent = [opened(replace(each, source=source)) for each in MANY]
    found = truth_lost_rows(FAMILY, absent, MOST, NOW)
    assert found is not None
    assert "without a delete: was" in found.sentence


# --- as the driver keeps it ----------------------------------------------------------------------


class Driver:
    """Open findings over a journal in memory."""

    def __init__(self) -> None:
        self.journal = MemoryJournal(lambda: NOW)
        held = HeldLooks("messages", None)
        metrics = Metrics(CollectorRegistry())
        self.open = OpenFindings(FAMILY, self.journal, metrics, "message", DELAY, held)

    def take(self, findings: Sequence[Finding], action: Action = Action.REPORT) -> None:
        ended = State.HEALED if action is Action.CLOSE else None
        for each in findings:
            self.journal.put(each)
        told = [Outcome(each.slot, action, each, ended, NOW) for each in findings]
        self.open.record_outcomes(told, MOST, NOW)

    def of_the_truth(self) -> list[Finding]:
        found = self.journal.open_findings(FAMILY)
        return [each for each in found if each.kind is Kind.TRUTH_LOST_ROWS]


def test_it_is_told_once_counts_on_and_ends_with_the_rows() -> None:
    driver = Driver()
    driver.take(FEW)
    assert driver.of_the_truth() == []
    driver.take(MANY[MOST:])
    (first,) = driver.of_the_truth()
    assert "lost 4 rows of 2 mailboxes" in first.sentence
    driver.take([absent(20)])
    (more,) = driver.of_the_truth()
    assert "lost 5 rows of 2 mailboxes" in more.sentence
    assert more.found_at == first.found_at
    driver.take(MANY[:2], Action.CLOSE)
    assert driver.of_the_truth() == []


def test_the_rows_that_it_stands_for_are_not_told_one_by_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver = Driver()
    driver.take(MANY)
    with caplog.at_level(logging.INFO):
        driver.take([absent(uid) for uid in range(20, 40)])
    assert caplog.records == []
    assert driver.open.counts()["messages", "absent_without_delete", "reported"] == 24


def test_it_is_no_key_that_is_looked_at_and_stands_after_a_start() -> None:
    driver = Driver()
    driver.take(MANY)
    (found,) = driver.of_the_truth()
    driver.open.recall()
    assert driver.open.of(found) is not None
    assert list(driver.open.take_due(NOW + 1000 * DAY)) == []
    driver.take([absent(20)])
    assert len(driver.of_the_truth()) == 1
