"""Steps 5–7 for suspects, in Spark's Python workers or, for few, in the driver's process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from checkpoints.clock import now_micros, to_micros
from checkpoints.expiries import Expiry
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action
from reconcilers.words.model import Suspect
from reconcilers.words.waiting import why_of
from streaming.pipeline.scheduled_looks import spread
from streaming.pipeline.worker import Job
from streaming.pipeline.worker_process import log_as_driver
from streaming.steps.outcome import Outcome
from streaming.steps.permit import Permit

AdmittedSuspects = tuple[Admission, list[Suspect]]
"""Suspects, and what is admitted for them."""


def never() -> None:
    """No reason to stop: Spark itself ends a Spark task."""


RepairTask = Callable[[Iterable[AdmittedSuspects]], Iterator[Outcome]]


def repair_task(job: Job, batch: str, stopping: Callable[[], str | None] = never) -> RepairTask:
    """For ``mapPartitions``: shares of a batch's suspects in, outcomes out.

    ``stopping`` says why nothing more is to be written, or returns None.
    """
    return partial(_repair_share, job, batch, stopping)


def _repair_share(
    job: Job, batch: str, stopping: Callable[[], str | None], shares: Iterable[AdmittedSuspects]
) -> Iterator[Outcome]:
    log_as_driver()
    for admission, suspects in shares:
        permit = _permit(job, admission, stopping)
        for projection in job.family.projections:
            concerned = [each for each in suspects if each.projection == projection.name]
            outcomes = job.examiner(job, projection).examine(concerned, permit, batch)
            _look_later(job, outcomes)
            for outcome in outcomes:
                finding = outcome.finding
                yield replace(outcome, finding=finding.without_rows() if finding else None)


def _look_later(job: Job, outcomes: Iterable[Outcome]) -> None:
    """Schedule a look at keys that wait for a table, each once and at its own time."""
    now, every = now_micros(), to_micros(job.settings.repair.recheck_interval)
    slots = [each.slot for each in outcomes if each.action is Action.LOOK_LATER]
    if slots:
        expected = (Expiry(slot, None, spread(slot, now, every)) for slot in slots)
        job.connections().expiries.expect(expected)


def _permit(job: Job, admission: Admission, stopping: Callable[[], str | None]) -> Permit:
    """What this process may write, by its own clock: it may differ from the driver's."""
    ours = job.connections()
    clocks = ours.clocks
    clocks.measure_if_due()
    if ours.pauses.keyspace is not None:
        ours.pauses.keyspace.expect(admission.generation)
    repairs = admission.repairs_wait or clocks.trouble()
    return Permit(
        replace(admission, repairs_wait=repairs),
        lambda: stopping() or why_of(clocks.moved()),
        ours.pauses.why,
    )
