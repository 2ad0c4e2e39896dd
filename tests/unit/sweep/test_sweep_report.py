"""What operators see of sweeps: the last that succeeded or failed, rows, whether one is due."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock, patch

import pytest
from prometheus_client import CollectorRegistry

from checkpoints.losses import Loss
from checkpoints.sweeps import SweepRecord
from reconcilers.rows.memory import Watching
from streaming.again.progress import CountedProgress
from streaming.again.schedule import NOT_WHOLE, SweepSchedule
from streaming.commands.running.own_sweeps import OwnSweeps
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.sweeps import SweepReport, failed_at, succeeded_at
from tests.builders.rights import FROM_EVENTS
from tests.builders.rows import DELAY, FAMILY, NOW, SECOND
from tests.fakes.checkpoints.losses import MemoryLosses

BEGAN = SweepRecord(NOW, "ana", "nightly", ("messages",), 512)
FAILED = replace(BEGAN, ended_at=NOW + 60 * SECOND)
GOOD = replace(FAILED, truth_swept_at=NOW + 50 * SECOND)


def later(sweep: SweepRecord, by: int) -> SweepRecord:
    """The same sweep, so many seconds later."""
    moved = by * SECOND
    return replace(
        sweep,
        began_at=sweep.began_at + moved,
        ended_at=sweep.ended_at and sweep.ended_at + moved,
        truth_swept_at=sweep.truth_swept_at and sweep.truth_swept_at + moved,
    )


@pytest.mark.parametrize(
    ("sweeps", "running", "succeeded", "failed"),
    [
        ([], None, None, None),
        ([GOOD], None, 60, None),
        ([FAILED], None, None, 60),
        ([BEGAN], None, None, 0),
        ([BEGAN], BEGAN, None, None),
        ([later(FAILED, 100), GOOD], None, 60, 160),
        ([later(BEGAN, 100), GOOD], None, 60, 100),
        ([later(BEGAN, 100), GOOD], later(BEGAN, 100), 60, None),
        ([later(GOOD, 100), BEGAN], None, 160, None),
        ([later(GOOD, 100), FAILED], None, 160, 60),
    ],
    ids=[
        "none yet",
        "it read the whole truth",
        "it did not",
        "it broke off",
        "it runs",
        "the last one failed",
        "the last one broke off",
        "one runs after a good one",
        "an older one broke off",
        "an older one failed",
    ],
)
def test_when_a_sweep_succeeded_and_when_one_failed(
    sweeps: list[SweepRecord],
    running: SweepRecord | None,
    succeeded: int | None,
    failed: int | None,
) -> None:
    assert [
        None if at is None else (at - NOW) // SECOND
        for at in (succeeded_at(sweeps), failed_at(sweeps, running))
    ] == [succeeded, failed]


class Shown:
    """A report, and what it exports."""

    def __init__(self) -> None:
        self.metrics = Metrics(CollectorRegistry())
        self.report = SweepReport(self.metrics)

    def value(self, name: str) -> float | None:
        labels = {} if name == "rows_total" else {"family": "message"}
        return self.metrics.registry.get_sample_value(f"reconciler_sweep_{name}", labels)


@pytest.fixture
def shown() -> Shown:
    return Shown()


def test_before_the_first_sweep_nothing_is_exported(shown: Shown) -> None:
    shown.report.show("message", [], running=None)
    for name in ("last_success_timestamp_seconds", "last_failure_timestamp_seconds"):
        assert shown.value(name) is None
    assert shown.value("duration_seconds") is None


def test_success_failure_and_duration_are_exported(shown: Shown) -> None:
    shown.report.show("message", [later(BEGAN, 100), GOOD], running=None)
    assert shown.value("last_success_timestamp_seconds") == NOW / SECOND + 60
    assert shown.value("last_failure_timestamp_seconds") == NOW / SECOND + 100
    assert shown.value("duration_seconds") == 60


def test_a_success_of_one_family_hides_no_failure_of_another(shown: Shown) -> None:
    shown.report.show("message", [FAILED], running=None)
    shown.report.show("rights", [later(GOOD, 100)], running=None)
    assert shown.value("last_failure_timestamp_seconds") == NOW / SECOND + 60
    assert shown.value("last_success_timestamp_seconds") is None


def test_a_failure_stays_exported_while_the_sweep_is_tried_again(shown: Shown) -> None:
    shown.report.show("message", [BEGAN], running=None)
    shown.report.show("message", [BEGAN], running=BEGAN)
    assert shown.value("last_failure_timestamp_seconds") == NOW / SECOND


def test_the_rows_that_are_compared_are_counted(shown: Shown) -> None:
    inner = Mock()
    progress = CountedProgress(inner, shown.metrics.sweep_rows)
    progress.table("imapuidtable", 0, 4)
    progress.round(2, 500, 3)
    progress.round(2, 250, 0)
    progress.waiting("no host answered")
    assert shown.value("rows_total") == 750
    assert [call[0] for call in inner.method_calls] == ["table", "round", "round", "waiting"]
    assert inner.round.call_args_list[0].args == (2, 500, 3)


# --- the stream's thread


@pytest.mark.parametrize("held", [True, False])
def test_the_stream_shows_the_sweeps_of_all_processes_also_if_it_never_sweeps(
    shown: Shown, held: bool
) -> None:
    opened, never = Mock(metrics=shown.metrics), SweepSchedule(False, None, DELAY)
    opened.job.family = FAMILY
    opened.job.connections().lineage.watching.return_value = Watching(NOW - 100 * DELAY)
    sweeps = OwnSweeps([opened], never, Mock(), shown.report)
    where = "streaming.commands.running.own_sweeps"
    with (
        patch(f"{where}.CassandraSweeps") as stored,
        patch(f"{where}.CassandraLease") as lease,
        patch(f"{where}.now_micros", return_value=NOW),
    ):
        stored.return_value.all.return_value = (later(BEGAN, 100), GOOD)
        lease.return_value.held_by.return_value = "somebody" if held else None
        sweeps._sweep_if_due(opened, Mock())
    assert shown.value("due") == 1
    assert shown.value("last_success_timestamp_seconds") == NOW / SECOND + 60
    failed = None if held else NOW / SECOND + 100
    assert shown.value("last_failure_timestamp_seconds") == failed


def test_a_sweep_is_needed_whether_or_not_the_stream_sweeps() -> None:
    never, watching = SweepSchedule(False, None, DELAY), Watching(NOW - 100 * DELAY)
    assert never.due(watching, [], NOW) is None
    assert never.needed(watching, [], NOW) == NOT_WHOLE
    assert never.needed(None, [], NOW) is None
    whole = replace(watching, swept_at=NOW, listed_at=NOW)
    assert never.needed(whole, [], NOW) is None


def test_one_that_has_just_failed_is_still_needed() -> None:
    schedule, watching = SweepSchedule(True, None, DELAY), Watching(NOW - 100 * DELAY)
    assert schedule.due(watching, [FAILED], NOW + 120 * SECOND) is None
    assert schedule.needed(watching, [FAILED], NOW + 120 * SECOND) == NOT_WHOLE


def test_a_family_without_lineage_is_due_by_its_own_sweeps_and_losses(shown: Shown) -> None:
    """Its sweep waits for the lineage of messages, which every loss of all streams restarts."""
    messages, rights = Mock(metrics=shown.metrics), Mock(metrics=shown.metrics)
    messages.job.family, rights.job.family = FAMILY, FROM_EVENTS
    messages.job.connections().lineage.watching.return_value = Watching(NOW - 100 * DELAY)
    lost, where = MemoryLosses(), "streaming.commands.running.own_sweeps"
    rights.losses, of_messages = lost, replace(GOOD, began_at=NOW + 1)
    good = replace(GOOD, systems=FROM_EVENTS.names)
    sweeps = OwnSweeps([messages, rights], SweepSchedule(False, None, DELAY), Mock(), shown.report)

    def due(*known: SweepRecord) -> float | None:
        with (
            patch(f"{where}.CassandraSweeps") as stored,
            patch(f"{where}.now_micros", return_value=NOW + 3 * DELAY),
        ):
            stored.return_value.all.return_value = known
            sweeps._sweep_if_due(rights, Mock())
        labels = {"family": "rights"}
        return shown.metrics.registry.get_sample_value("reconciler_sweep_due", labels)

    assert due(of_messages) == 1
    assert due(of_messages, good) == 0
    lost.record(Loss(NOW + DELAY, "Kafka no longer holds unread records of james/0"))
    assert due(of_messages, good) == 1
