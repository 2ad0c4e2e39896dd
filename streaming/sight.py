"""What one look has read so far: the slots asked for, both sides, and what lineage holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from checkpoints.lineage import Entry
from reconcilers.model import Kind, Micros, Row, Slot, Wake


@dataclass(slots=True)
class Target:
    """A slot to be compared, and all that its wakes told of it."""

    slot: Slot
    messageids: set[UUID] = field(default_factory=set)
    oldest: Micros | None = None
    looked_again: bool = False
    suspected: Kind | None = None

    def learn(self, wake: Wake, messageid: UUID | None) -> None:
        """Take in one more wake of this slot."""
        if messageid is not None:
            self.messageids.add(messageid)
        times = [at for at in (self.oldest, wake.oldest) if at is not None]
        self.oldest = min(times, default=None)
        self.looked_again |= wake.looked_again
        self.suspected = self.suspected or wake.suspected


@dataclass(slots=True)
class Sight:
    """Both sides as read so far."""

    targets: dict[Slot, Target] = field(default_factory=dict)
    rows: dict[Slot, Row] = field(default_factory=dict)
    truths: dict[UUID, tuple[Row, ...]] = field(default_factory=dict)
    entries: dict[UUID, list[Entry]] = field(default_factory=dict)
    read: set[UUID] = field(default_factory=set)

    def target(self, slot: Slot) -> Target:
        """The slot's target, new if nobody asked for it yet."""
        return self.targets.setdefault(slot, Target(slot))
