"""What the driver does for each slice, in one object; `streaming.commands` makes its parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reconcilers.limits.gate import Admission, admit
from reconcilers.words.model import Micros, Slot, Wake
from reconcilers.words.waiting import Wait
from streaming.canary.alone import CanariesAlone
from streaming.canary.memory_watch import Memories
from streaming.pipeline.admission import AdmissionControl
from streaming.pipeline.batch_record import BatchRecord
from streaming.pipeline.behind import BehindWatch
from streaming.pipeline.ceiling import WriteCeiling
from streaming.pipeline.open_finding import OpenFinding
from streaming.pipeline.open_findings import OpenFindings
from streaming.pipeline.pause_report import PAUSES
from streaming.pipeline.scheduled_looks import ExpiredCells
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook
from streaming.steps.outcome import Repaired


@dataclass(frozen=True, slots=True)
class Batches:
    """One family's slices, one after the other: admit, record outcomes, look again."""

    admission: AdmissionControl
    ceiling: WriteCeiling
    open_findings: OpenFindings
    expired: ExpiredCells
    record: BatchRecord
    memory: Memories
    alone: CanariesAlone
    behind: BehindWatch

    def start(self) -> list[Wake]:
        """Read the journal. Returns the keys to look at at once, if what was held may go."""
        self.memory.check()
        self.recall()
        self.record.start()
        self.admission.breakers.recall()
        if not self.admission.lets_held_go:
            return []
        self.open_findings.let_go()
        return self._wakes(self.open_findings.take_held(self.record.clock()))

    def recall(self) -> None:
        """Read the open findings again: a batch that failed did not report its work."""
        self.open_findings.recall()
        self.expired.recall(self.record.position.recorded_at(), self.record.clock())

    def admit(self, look: BatchLook, piece: Slice) -> Admission:
        """What may be repaired in this slice. Raises `AlreadyRunning` when the lease is lost."""
        read_at = piece.read_at or self.record.clock()  # unknown for late records
        answers = self.admission.answers(look, piece.name, read_at)
        if look.suspects:
            heard = self.behind.heard(piece, look.echoes)
            answers = replace(answers, behind=self.behind.why(heard), frontier=heard.frontier)
        admission = admit(replace(answers, ceiling=self.ceiling.left()))
        self.ceiling.reserve(admission, len(look.suspects))
        return admission

    def canaries_alone(self, piece: Slice) -> BatchLook | None:
        """The canaries of a slice that holds nothing else; None for any other slice."""
        heard = self.alone.heard(piece.ranges)
        return None if heard is None else BatchLook(echoes=self.record.frontier.folded(heard))

    def unreadable(self) -> frozenset[Slot]:
        """The places that are known to be unreadable: each is read alone, at its next look."""
        return self.open_findings.unreadable()

    def record_outcomes(self, repaired: Repaired) -> None:
        """Record what became of the suspects.

        What an attempt did whose outcomes are lost, only the journal tells; it counts as all that
        was admitted.
        """
        if not repaired.again:
            self.ceiling.settle(repaired.outcomes)
        self.open_findings.record_outcomes(repaired.outcomes)
        if repaired.again:
            self.open_findings.recall()

    def later_looks(self, now: Micros) -> list[Wake]:
        """Keys to look at again now: due ones, ones no longer held, ones with expired cells."""
        self._let_go()
        self.open_findings.recall_told(now)
        due = self._wakes(self.open_findings.take_due(now))
        return [*due, *self.expired.take_due(now)]

    def ended(self, look: BatchLook, piece: Slice) -> None:
        """Record a finished slice: the summary for counters, its offsets, then metrics."""
        self.memory.heard(self.record.ended(look, piece))
        self.behind.why(self.behind.heard(piece))

    def _wakes(self, found: Iterable[OpenFinding]) -> list[Wake]:
        return [each.wake(self.open_findings.family) for each in found]

    def _let_go(self) -> None:
        """Let keys come back, at a pace, that no breaker, pause or late frontier holds any more."""
        if self.admission.breakers.was_resumed():
            self.open_findings.let_go()
        unpaused, caught_up = self.admission.pauses.is_over(), self.behind.is_over()
        if not self.admission.lets_held_go:
            return
        if unpaused:
            self.open_findings.let_go(PAUSES)
        if caught_up:
            self.open_findings.let_go({Wait.BEHIND})

    # --- for the supervisor

    def check_lease(self) -> None:
        """Raise `AlreadyRunning` if another live stream may hold the lease by now."""
        self.admission.check_lease()
