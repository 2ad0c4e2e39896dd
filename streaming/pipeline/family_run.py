"""What a query and a thread that run a family have in common; see `supervisor.Supervised`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from checkpoints.bookmarks import Offsets, flat
from reconcilers.words.model import Wake
from streaming.pipeline.slice_work import SliceWork


@dataclass(slots=True)
class FamilyRun(ABC):
    """Runs one family: ``work`` is done with what has waited."""

    work: SliceWork

    @property
    def name(self) -> str:
        """The name of the family."""
        return self.work.job.family.name

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Publish keys to be looked at again."""
        self.work.publish(wakes)

    def release(self, read: Offsets) -> bool:
        """Release what was read before these offsets and has not come out; whether there is any."""
        return self.work.ranges.release(flat(read))

    def end(self) -> None:
        """Stop for good, and record a clean end."""
        self.stop()
        self.work.ranges.failures.end()

    @abstractmethod
    def stop(self) -> None:
        """Stop it. Nothing of it runs after this returns; unsettled work is repeated.

        A task on a worker is interrupted; an examination in this process ends before its next
        write.
        """
