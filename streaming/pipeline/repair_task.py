"""Steps 5–7 for suspects, in Spark's Python workers or, for few, in the driver's process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from pyspark import TaskContext

from checkpoints.clock import now_micros, to_micros
from checkpoints.expiries import Expiry
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import Action
from reconcilers.words.model import Micros, Suspect
from reconcilers.words.waiting import why_of
from streaming.pipeline.scheduled_looks import spread
from streaming.pipeline.worker import Job
from streaming.pipeline.worker_process import log_as_driver
from streaming.steps.outcome import Outcome, Repaired
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
    return partial(_repair_share, job, batch, stopping, now_micros())


def attempt(task: RepairTask, shares: Iterable[AdmittedSuspects]) -> Iterator[Repaired]:
    """For ``mapPartitions``: what became of these shares, in whichever attempt of a Spark task.

    One that was lost with its executor, or that still runs on a host that hangs, has written up to
    what was admitted. So another finishes only what the journal says was begun; the rest waits.
    """
    context = TaskContext.get()
    again = context is not None and context.attemptNumber() > 0
    if again:
        shares = ((admission.used_up(), suspects) for admission, suspects in shares)
    yield Repaired(list(task(shares)), again)


def _repair_share(
    job: Job,
    batch: str,
    stopping: Callable[[], str | None],
    now: Micros,
    shares: Iterable[AdmittedSuspects],
) -> Iterator[Outcome]:
    log_as_driver()
    for admission, suspects in shares:
        permit = _permit(job, admission, stopping)
        for projection in job.family.projections:
            concerned = [each for each in suspects if each.projection == projection.name]
            outcomes = job.examiner(job, projection).examine(concerned, permit, batch)
            _look_later(job, outcomes, now)
            for outcome in outcomes:
                finding = outcome.finding
                yield replace(outcome, finding=finding.without_rows() if finding else None)


def _look_later(job: Job, outcomes: Iterable[Outcome], now: Micros) -> None:
    """Schedule a look at keys that wait for a table, each once and at its own time.

    ``now`` (µs) is the driver's: by the clock of a host that is behind they would be due already,
    and nobody would read them.
    """
    every = to_micros(job.settings.repair.recheck_interval)
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
