"""The thread of a stream's own sweeps: what fails ends no later one."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest.mock import Mock, patch

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.words.errors import AlreadyRunning, Unreachable
from streaming.again.sweep import Interrupted
from streaming.commands.running import own_sweeps
from streaming.commands.running.own_sweeps import LONGEST_PAUSE, LOOKS_EVERY, OwnSweeps
from streaming.monitoring.metrics import Metrics
from streaming.settings import Settings
from tests.fakes.pausing import Pauses


@pytest.mark.parametrize("failure", [OSError(28, "No space left"), Unreachable("no broker")])
def test_whatever_fails_it_looks_again_and_keeps_its_one_client(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    watcher = Mock()
    sweeps = OwnSweeps([Mock()], Mock(), watcher, Mock())
    with patch.object(OwnSweeps, "_sweep_if_due", side_effect=failure) as tried:
        sweeps.run(Pauses(9))
    assert tried.call_count > 3
    assert str(failure) in caplog.text
    assert watcher.close.call_count == 1


def test_a_defect_is_logged_and_tried_again_after_a_pause_that_grows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    metrics, stop = Metrics(CollectorRegistry()), Pauses(6)
    sweeps = OwnSweeps([Mock(metrics=metrics)], Mock(), Mock(), Mock())
    with patch.object(OwnSweeps, "_sweep_if_due", side_effect=KeyError("a defect")) as tried:
        sweeps.run(stop)
    assert tried.call_count == 6
    assert stop.taken == [LOOKS_EVERY, 60, 120, 240, 480, LONGEST_PAUSE, LONGEST_PAUSE]
    assert metrics.registry.get_sample_value("reconciler_sweep_faults_total") == 6
    assert [type(each.exc_info[1]) for each in caplog.records if each.exc_info] == [KeyError] * 6


def test_after_a_look_that_ended_well_the_pauses_begin_anew() -> None:
    stop, looks = Pauses(5), [KeyError("a"), KeyError("b"), None, KeyError("c"), Interrupted()]
    sweeps = OwnSweeps([Mock(metrics=Metrics(CollectorRegistry()))], Mock(), Mock(), Mock())
    with patch.object(OwnSweeps, "_sweep_if_due", side_effect=looks):
        sweeps.run(stop)
    assert stop.taken == [LOOKS_EVERY, 60, 120, LOOKS_EVERY, 60]


@pytest.mark.parametrize("failure", [Unreachable("no broker"), KeyError("a defect")])
def test_a_sweep_that_fails_holds_up_no_other_family(failure: Exception) -> None:
    opened = [Mock(metrics=Metrics(CollectorRegistry())) for _ in range(2)]
    swept: list[object] = []

    def sweep(of: object, _stop: object) -> None:
        swept.append(of)
        if of is opened[0]:
            raise failure

    sweeps, stop = OwnSweeps(opened, Mock(), Mock(), Mock()), Pauses(2)
    with patch.object(OwnSweeps, "_sweep_if_due", side_effect=sweep):
        sweeps.run(stop)
    assert swept == opened * 2
    assert stop.taken[1] == 60, "it is tried again later"


@pytest.mark.parametrize(("hour", "begins"), [(0, False), (1, True), (5, False)])
def test_a_sweep_that_is_due_begins_within_its_hours(
    monkeypatch: pytest.MonkeyPatch, hour: int, begins: bool
) -> None:
    settings = Settings.model_validate({"sweep": {"between": "01:00-05:00", "ranges": 1}})
    opened = Mock(metrics=Metrics(CollectorRegistry()), settings=settings)
    opened.job.family.name, opened.job.family.names = "message", ()
    monkeypatch.setattr(own_sweeps, "local_time", lambda: datetime(2026, 11, 28, hour, tzinfo=UTC))
    monkeypatch.setattr(own_sweeps, "CassandraSweeps", Mock(return_value=Mock(all=lambda: ())))
    monkeypatch.setattr(own_sweeps, "Alone", begun := Mock(side_effect=AlreadyRunning("enough")))
    sweeps = OwnSweeps([opened], Mock(), Mock(), Mock())
    sweeps.run(Pauses(1))
    assert begun.called is begins
