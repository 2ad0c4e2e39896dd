"""The sweeps that a stream starts when they are due, beside its batches."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from threading import Event

from checkpoints.cassandra import CassandraLease, CassandraSweeps
from checkpoints.clock import now_micros, to_micros
from checkpoints.sweeps import SweepRecord, of_systems
from reconcilers.rows.memory import Watching
from reconcilers.words.errors import AlreadyRunning, ReconcilerError
from streaming.again.pauses import local_time
from streaming.again.progress import CountedProgress, LoggedProgress
from streaming.again.schedule import SweepSchedule, without_lineage
from streaming.again.sweep import Interrupted
from streaming.again.workers import beside_a_stream
from streaming.commands.running.leases import Alone, clocks_apart
from streaming.commands.wiring.hand_over import hand_over, wait_unless
from streaming.commands.wiring.opened_stream import OpenedStream
from streaming.commands.wiring.sweeper import lease_of, ranges_of, sweeper, told_of
from streaming.monitoring.sweeps import SweepReport
from streaming.settings import Settings
from streaming.topics import Watcher

log = logging.getLogger("reconciler")

LOOKS_EVERY = 10.0
"""Seconds between two looks at whether a sweep is due."""
PAUSE = 60.0
"""Seconds until what failed is tried again."""
LONGEST_PAUSE = 600.0
"""Seconds, after a defect of ours: the pause is doubled each time."""
WHO = "the stream"


class Defect(Exception):
    """A sweep has failed by a defect of ours; the log has the traceback."""


@dataclass(frozen=True, slots=True)
class OwnSweeps:
    """Sweeps of every family, one after another, while their streams run.

    ``opened`` has each family's stream, that of messages first. ``watcher`` belongs to this thread,
    which closes it.
    """

    opened: Sequence[OpenedStream]
    schedule: SweepSchedule
    watcher: Watcher
    report: SweepReport

    def run(self, stop: Event) -> None:
        """Run until told to stop. A sweep that fails is tried again later."""
        with closing(self.watcher):
            self._run(stop)

    def _run(self, stop: Event) -> None:
        pause, after_a_defect = LOOKS_EVERY, PAUSE
        while not stop.wait(pause):
            pause = LOOKS_EVERY
            try:
                self._look(stop)
                after_a_defect = PAUSE
            except Interrupted:
                return
            except AlreadyRunning:
                log.debug("somebody sweeps already")
            except Defect as defect:
                log.error("%s; it is tried again in %d s", defect, round(after_a_defect))
                pause, after_a_defect = after_a_defect, min(2 * after_a_defect, LONGEST_PAUSE)
            except (ReconcilerError, OSError) as failed:  # its temporary folder, too
                if not stop.is_set():
                    log.warning("the sweep waits: %s", failed)
                    pause = PAUSE

    def _look(self, stop: Event) -> None:
        """Run the sweeps that are due. One that fails holds up no other; its error is raised."""
        failures = list[Exception]()
        for each in self.opened:
            try:
                self._try(each, stop)
            except (Defect, ReconcilerError, OSError) as failed:
                failures.append(failed)
        for failure in failures:
            raise failure

    def _try(self, opened: OpenedStream, stop: Event) -> None:
        """Run a family's sweep if one is due.

        Raises `Defect` for an unexpected error: a restart of the process would continue the same
        sweep, fail again, and settle nothing.
        """
        try:
            self._sweep_if_due(opened, stop)
        except (Interrupted, ReconcilerError, OSError):
            raise
        except Exception as failed:
            log.exception("a sweep has ended by a defect")
            opened.metrics.sweep_faults.inc()
            raise Defect(f"a sweep has ended by a defect: {failed!r}") from failed

    def _sweep_if_due(self, opened: OpenedStream, stop: Event) -> None:
        family, now = opened.job.family, now_micros()
        sweeps = CassandraSweeps(opened.store, opened.settings.cassandra.keyspace)
        known = of_systems(sweeps.all(), family.names)
        watching = self._watching(opened, known)
        needed = self.schedule.needed(watching, known, now) is not None
        opened.metrics.sweep_due.labels(family.name).set(needed)
        self.report.show(family.name, known, self._running(opened, known))
        why = self.schedule.due(watching, known, now)
        hours = opened.settings.sweep.hours
        if why is None or watching is None or (hours and hours.opens_in(local_time())):
            return
        begun = SweepRecord(now, WHO, why, family.names, ranges_of(opened.settings, family))
        with Alone(opened.store, lease_of(opened.settings), clocks_apart(opened.settings.stream)):
            left = self.schedule.left(watching, of_systems(sweeps.all(), family.names), begun)
            if left is None:
                sweeps.begin(begun)
            does = "goes on with" if left else "begins"
            log.info("%s a sweep of family %s: %s", does, family.name, why)
            self._sweep(opened, left or begun, stop)

    def _watching(self, opened: OpenedStream, known: Sequence[SweepRecord]) -> Watching | None:
        """Since when every change of a family was received, and when it was swept."""
        if opened.job.family.remembered:
            return opened.job.connections().lineage.watching()
        watching = self.opened[0].job.connections().lineage.watching()
        lost_at = max((each.at for each in opened.losses.since(0)), default=0)
        return without_lineage(watching, lost_at, known, self.schedule.delay)

    def _running(self, opened: OpenedStream, sweeps: Sequence[SweepRecord]) -> SweepRecord | None:
        """The newest sweep, if it has not ended and any process holds the lease."""
        if not sweeps or sweeps[0].ended_at is not None:
            return None
        lease = lease_of(opened.settings)
        return sweeps[0] if CassandraLease(opened.store).held_by(lease) else None

    def _sweep(self, opened: OpenedStream, sweep: SweepRecord, stop: Event) -> None:
        wait = partial(wait_unless, stop)
        sink = hand_over(opened.job, opened.names, opened.store, self.watcher, wait)
        shown = CountedProgress(LoggedProgress(), opened.metrics.sweep_rows)
        with sweeper(opened.job, opened.store, sink, shown, wait, beside_a_stream) as made:
            found = made.run(sweep)
        for line in (*told_of(opened.job.family, found), *sink.finish().lines()):
            log.info("sweep: %s", line)


def schedule_of(settings: Settings) -> SweepSchedule:
    """The schedule of these settings."""
    days = settings.sweep.every_days
    every = to_micros(days * 86_400) if days else None
    return SweepSchedule(settings.sweep.when_needed, every, to_micros(settings.stream.delay))
