"""What is told of a finding: a sentence in the log with its facts, and its metrics."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Kind, Slot
from streaming.monitoring.metrics import Metrics
from streaming.monitoring.report import report_change, report_end, report_looks_again
from tests.builders.rows import MAILBOX, NOW

FINDING = Finding(
    family="mailbox_tally",
    projection="mailbox_counters",
    slot=Slot(MAILBOX),
    source=None,
    kind=Kind.COUNTER_DRIFT,
    state=State.INTENDED,
    sentence="count 3 should be 2",
    found_at=NOW,
    attempts=1,
)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def findings(metrics: Metrics, state: State) -> float:
    labels = {"projection": FINDING.projection, "kind": FINDING.kind, "state": state}
    return metrics.registry.get_sample_value("reconciler_findings_total", labels) or 0


def repairs(metrics: Metrics, outcome: str) -> float:
    labels = {"projection": FINDING.projection, "outcome": outcome}
    return metrics.registry.get_sample_value("reconciler_repairs_total", labels) or 0


def facts(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    (record,) = caplog.records
    return dict(record.__dict__["finding"])


def test_a_finding_is_told_by_its_sentence_with_its_facts(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "reconciler"):
        report_change(metrics, FINDING)
    assert caplog.messages == ["count 3 should be 2"]
    assert facts(caplog) == {
        "projection": "mailbox_counters",
        "mailboxid": str(MAILBOX),
        "messageid": None,
        "kind": "counter_drift",
        "state": "intended",
        "wait": None,
        "attempts": 1,
    }
    assert findings(metrics, State.INTENDED) == 1


def test_an_end_is_told_with_the_state_it_ended_in(
    metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "reconciler"):
        report_end(metrics, FINDING, State.VERIFIED)
    assert caplog.messages == ["verified: count 3 should be 2"]
    assert facts(caplog)["state"] == "verified"
    assert findings(metrics, State.VERIFIED) == 1


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        (State.VERIFIED, "verified"),
        (State.SUPERSEDED, "superseded"),
        (State.HEALED, None),
        (State.PARKED, None),
    ],
)
def test_only_a_repair_that_was_seen_to_hold_or_was_overtaken_has_an_outcome(
    metrics: Metrics, ended: State, outcome: str | None
) -> None:
    report_change(metrics, FINDING)
    outcomes = ("verified", "superseded", "stuck")
    assert [repairs(metrics, each) for each in outcomes] == [0, 0, 0]
    report_end(metrics, FINDING, ended)
    assert [repairs(metrics, each) for each in outcomes] == [each == outcome for each in outcomes]


def test_what_is_stuck_is_counted_when_it_becomes_so(metrics: Metrics) -> None:
    report_change(metrics, replace(FINDING, state=State.STUCK))
    assert repairs(metrics, "stuck") == 1


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        (
            ["absent", "young", "", "young"],
            ["looking again at 3 keys one delay later: 2 young; 1 absent"],
        ),
        (["", ""], []),
    ],
    ids=["some", "none"],
)
def test_looks_again_are_one_line_with_counts_by_reason(
    reasons: list[str], told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        report_looks_again(reasons)
    assert [record.getMessage() for record in caplog.records] == told
