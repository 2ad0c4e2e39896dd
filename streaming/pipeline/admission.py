"""What may be repaired in a batch: the driver decides it between the look and any write.

Five things hold repairs back: an open breaker (too many suspects to believe), a person's pause, a
doubtful keyspace of ours, clocks that differ by half the delay or more, and writers whose clocks
are ahead by more than that. Suspects are counted *before* a write: the batch that exceeds a limit
is not repaired either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from checkpoints.lease import Lease
from reconcilers.declared.family import Family
from reconcilers.limits.breakers import Breaker, SliceCount, count_of
from reconcilers.limits.gate import Answers
from reconcilers.limits.write_target import EVERYTHING, WriteTarget, repair_of
from reconcilers.words.model import Kind, Micros, Slot, Suspect
from reconcilers.words.waiting import Wait, Waiting
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.breakers import BreakerWatch
from streaming.pipeline.open_findings import OpenFindings
from streaming.pipeline.pause_report import PauseReport
from streaming.pipeline.suspect_cap import MOST, NewDifferences
from streaming.pipeline.worker import BatchLook
from streaming.settings import Mode
from streaming.steps.repair import WRITTEN

FEW_KEYS = 20
"""Fewer keys of fast writers than this may be stray ones."""


@dataclass(slots=True)
class AdmissionControl:
    """Admits one family's batches, one after the other.

    ``clock_trouble`` says why the clocks allow no repair now, or returns None.
    """

    family: Family
    breakers: BreakerWatch
    mode: Mode
    lease: Lease | None
    clock_trouble: Callable[[], Waiting | None]
    metrics: Metrics
    pauses: PauseReport
    findings: OpenFindings

    @property
    def lets_held_go(self) -> bool:
        """Whether held keys may be looked at: in repair mode, while no breaker is open."""
        return self.mode is Mode.REPAIR and not self.breakers.any_open

    def answers(self, look: BatchLook, batch: str, at: Micros) -> Answers:
        """Count what this batch, read ``at`` (µs), is about to write; return each limit's answer.

        Keys on hold are not counted, so a person who undoes much opens no breaker. What was left
        out of the look travels as far as it can, a bounded number while repairs are held by their
        breaker. Raises `AlreadyRunning` if the lease is lost: this process may not write any more.
        """
        self.check_lease()
        answers = self._answers(look)
        held = answers.trouble or answers.repairs_breaker
        counted, count = self._counted(look, held, batch, at)
        most = MOST if look.left_out and self.breakers.opens(count) else None
        if look.left_out and look.take_left_out(most):
            counted, count = self._counted(look, held, batch, at)
        self.breakers.count(count)
        self.breakers.remember(counted, at)
        return replace(
            answers,
            repairs_breaker=self.breakers.reason(Breaker.REPAIRS),
            removals_breaker=self.breakers.reason(Breaker.REMOVALS),
            generation=self.pauses.generation,
        )

    def _counted(
        self, look: BatchLook, held: Waiting | None, batch: str, at: Micros
    ) -> tuple[set[tuple[str, Slot]], SliceCount]:
        """The slots of projections that count, and the count of them and of what was left out."""
        counted = {
            (each.projection, each.slot)
            for each in look.suspects
            if each.kind is not None and self._counts(held, each, at)
        } - self.findings.on_hold(look.suspects)
        count = count_of(
            look.suspects,
            self.family.listing.name,
            look.examined,
            lambda each: (each.projection, each.slot) in counted,
            batch,
            at,
        )
        return counted, count.and_new(self._left_out(look), self.family.listing.name)

    def _counts(self, held: Waiting | None, suspect: Suspect, at: Micros) -> bool:
        """Whether a suspect counts: it is new, or it came back and may be written now.

        A suspect does not count while its table refuses or it is paused: it comes back, and counts
        then. A difference that can only be reported never counts.
        """
        target = self._target(suspect.projection, suspect.kind, suspect.slot)
        if target is None:
            return False
        if not suspect.looked_again:
            return True
        if self.mode is Mode.OBSERVE or held is not None:
            return False
        if target.is_removal and self.breakers.reason(Breaker.REMOVALS):
            return False
        decided = self.findings.is_open(suspect)
        within = self.breakers.once_in if decided else self.breakers.put_off_for
        counted = self.breakers.was_counted(suspect, at, within)
        return self.findings.is_not_written(suspect) and not counted

    def _target(self, projection: str, kind: Kind | None, slot: Slot) -> WriteTarget | None:
        """The repair of a difference; None if there is none, or its table or a pause refuses it."""
        of = next(each for each in self.family.projections if each.name == projection)
        if kind is None or kind not in WRITTEN or of.only_by or of.name in self.findings.refusing:
            return None
        target = repair_of(of, kind, slot)
        paused = self.mode is Mode.REPAIR and self.pauses.watch.why(target) is not None
        return None if paused else target

    def _left_out(self, look: BatchLook) -> dict[tuple[str, Kind], int]:
        """The new differences that were left out, as far as they count.

        Their slots are not known: while there is a pilot, they count as outside it.
        """
        new, nowhere = NewDifferences(), self.family.nowhere
        for each in look.left_out:
            new.update(each.new)
        return {of: number for of, number in new.items() if self._target(*of, nowhere) is not None}

    def paused_because(self) -> Waiting | None:
        """Why no repair at all is possible now, whatever a batch holds; None if one is."""
        answers = self._answers()
        return answers.trouble or answers.repairs_breaker

    def _answers(self, look: BatchLook | None = None) -> Answers:
        """The answers before anything is counted. Open breakers have a metric of their own."""
        clocks = self.clock_trouble()
        writers = None if look is None else _fast_writers(look)
        self.metrics.show_wait(Wait.CLOCKS, clocks)
        if look is not None and look.examined:
            self.metrics.show_wait(Wait.FAST_WRITERS, writers)
        return Answers(
            observe=self.mode is Mode.OBSERVE,
            clocks=clocks,
            fast_writers=writers,
            pauses=self.pauses.watch.why(EVERYTHING) if (clocks or writers) is None else None,
            repairs_breaker=self.breakers.reason(Breaker.REPAIRS),
        )

    def check_lease(self) -> None:
        """Raise `AlreadyRunning` if another live stream may hold the lease by now."""
        if self.lease is not None and not self.lease.holds():
            self.lease.acquire()


def _fast_writers(look: BatchLook) -> Waiting | None:
    """Why to wait for writers whose clocks are ahead by over D/2; None for a few stray keys."""
    number = look.times.fast_writers
    if number < max(FEW_KEYS, look.examined // 100):
        return None
    told = f"{number} keys were written by clocks ahead by more than half the delay"
    return Waiting(Wait.FAST_WRITERS, told)
