"""Reports findings: one sentence in the log, and metrics."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from reconcilers.declared.families import family_named
from reconcilers.rows.finding import Finding, State
from reconcilers.words.key import named
from streaming.monitoring.metrics import Metrics

log = logging.getLogger("reconciler")

REPAIRED_AS = {State.VERIFIED: "verified", State.SUPERSEDED: "superseded"}


def report_change(metrics: Metrics, finding: Finding) -> None:
    """Report a finding that is new or has another state."""
    metrics.findings.labels(finding.projection, finding.kind, finding.state).inc()
    report_reason(finding)
    if finding.state is State.STUCK:
        metrics.repairs.labels(finding.projection, "stuck").inc()


def report_reason(finding: Finding) -> None:
    """Log what differs, and what the finding waits for."""
    log.info("%s", finding.told, extra={"finding": _facts(finding)})


def report_end(metrics: Metrics, finding: Finding, ended: State) -> None:
    """Report that a finding is closed."""
    metrics.findings.labels(finding.projection, finding.kind, ended).inc()
    if ended in REPAIRED_AS:
        metrics.repairs.labels(finding.projection, REPAIRED_AS[ended]).inc()
    facts = _facts(replace(finding, state=ended))
    log.info("%s: %s", ended.value, finding.sentence, extra={"finding": facts})


def report_looks_again(reasons: Iterable[str]) -> None:
    """Log in one line how many keys of a batch were published again, by reason.

    An empty reason stands for a key that was not published.
    """
    counts = Counter(reason for reason in reasons if reason)
    if counts:
        told = "; ".join(f"{number} {reason}" for reason, number in counts.most_common())
        log.info("looking again at %d keys one delay later: %s", counts.total(), told)


def _facts(finding: Finding) -> dict[str, object]:
    family = family_named(finding.family)
    return {
        "projection": finding.projection,
        **named(family.key, finding.slot.key),
        family.truth.source.name: finding.source,
        "kind": finding.kind.value,
        "state": finding.state.value,
        "wait": finding.wait,
        "attempts": finding.attempts,
    }
