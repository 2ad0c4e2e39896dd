"""What the driver does for each batch, in one object; `streaming.commands` makes its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from checkpoints.bookmarks import Bookmark, Offsets
from checkpoints.lineage import Lineage
from reconcilers.model import Micros, Wake
from reconcilers.policy import Admission
from streaming.pipeline.admission import AdmissionControl
from streaming.pipeline.batch_record import BatchPlace, BatchRecord
from streaming.pipeline.open_findings import OpenFindings, finding_wake
from streaming.pipeline.scheduled import ExpiredCells
from streaming.pipeline.worker import BatchLook
from streaming.steps.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Batches:
    """One family's batches, one after the other: what may be repaired, looked at again, is kept."""

    admission: AdmissionControl
    open_findings: OpenFindings
    expired: ExpiredCells
    record: BatchRecord
    lineage: Lineage
    clock: Callable[[], Micros]

    def start(self) -> list[Wake]:
        """Read the journal; returns the keys to look at at once (mode switched, breaker closed)."""
        now = self.clock()
        if self.lineage.watched_since() is None:
            self.lineage.watch_from(now)
        self.recall()
        self.record.start(now)
        self.admission.recall()
        return self._held() if self.admission.lets_held_go else []

    def recall(self) -> None:
        """Read the open findings anew: a batch that failed told nothing of its work."""
        self.open_findings.recall()
        self.expired.recall(self.record.position.recorded_at(), self.clock())

    def admit(self, look: BatchLook, now: Micros) -> Admission:
        """What may be repaired in this batch. Raises `AlreadyRunning` when the lease is lost."""
        return self.admission.admit(look, now)

    def record_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        """Take in what became of the suspects."""
        self.open_findings.record_outcomes(outcomes)

    def later_looks(self, now: Micros) -> list[Wake]:
        """Keys to look at again now: those due, those a person let go, those with expired cells."""
        resumed = self._held() if self.admission.was_resumed() else []
        due = [finding_wake(finding) for finding in self.open_findings.take_due(now)]
        return [*resumed, *due, *self.expired.take_due(now)]

    def ended(self, look: BatchLook, batch: BatchPlace) -> None:
        """The batch is done: its bookmark, the consumer group's offsets, its metrics."""
        self.record.ended(look, batch)

    def _held(self) -> list[Wake]:
        return [finding_wake(finding) for finding in self.open_findings.held()]

    # --- for the supervisor

    def read_up_to(self) -> Offsets:
        """Where the last batch ended."""
        return self.record.position.read_up_to

    def check_lease(self) -> None:
        """Raises `AlreadyRunning` when another live stream may hold the lease by now."""
        self.admission.check_lease()

    def recent_bookmarks(self) -> list[Bookmark]:
        """Where a fresh checkpoint may begin."""
        return self.record.position.recent()

    def events_lost(self) -> None:
        """Events are known to be lost: what was remembered as complete no longer is."""
        self.lineage.watch_from(self.clock())
