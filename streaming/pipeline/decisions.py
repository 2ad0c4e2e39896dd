"""What a query asks its driver for each slice; `batches.Batches` is the real one."""

from __future__ import annotations

from typing import Protocol

from reconcilers.limits.gate import Admission
from reconcilers.words.model import Micros, Slot, Wake
from streaming.pipeline.slices import Slice
from streaming.pipeline.worker import BatchLook
from streaming.steps.outcome import Outcome


class Decisions(Protocol):
    """What the driver decides for each slice."""

    def admit(self, look: BatchLook, piece: Slice) -> Admission:
        """What may be repaired in this slice. Raises when this process may not write at all."""

    def canaries_alone(self, piece: Slice) -> BatchLook | None:
        """The canaries of a slice that holds nothing else; None of any other."""

    def unreadable(self) -> frozenset[Slot]:
        """The places that are known to be unreadable."""

    def recall(self) -> None:
        """Read anew what is kept. Raises `Retryable` where Cassandra does not answer."""

    def record_outcomes(self, outcomes: list[Outcome]) -> None:
        """What became of the suspects."""

    def later_looks(self, now: Micros) -> list[Wake]:
        """Keys that are due to be looked at again."""

    def ended(self, look: BatchLook, piece: Slice) -> None:
        """The slice is done: counters are told, then it is settled."""
