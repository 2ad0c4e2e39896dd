"""The open findings of each group (mailbox); another thread may read them at any time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from uuid import UUID

from reconcilers.counters.open_message import OpenMessage
from reconcilers.words.model import Slot
from streaming.counters.open_messages import MOST
from streaming.pipeline.open_finding import OpenFinding

PARTS = 256
"""A change copies one of these parts of the groups."""
Part = Mapping[UUID, tuple[OpenFinding, ...]]
NO_PARTS: tuple[Part, ...] = ({},) * PARTS


@dataclass(frozen=True, slots=True, eq=False)
class MessagesByGroup(Mapping[UUID, Sequence[OpenMessage]]):
    """The messages with an open finding, by mailbox. A message is made when it is read.

    A mailbox with more than `MOST` of them has one more than that here: its counters then wait.
    """

    parts: tuple[Part, ...] = NO_PARTS

    def __getitem__(self, group: UUID) -> Sequence[OpenMessage]:
        """The messages of a mailbox. Raises `KeyError` if there are none."""
        found = self.parts[_part_of(group)][group]
        return [message for each in found if (message := each.message) is not None]

    def __iter__(self) -> Iterator[UUID]:
        """The mailboxes with such messages."""
        return chain.from_iterable(self.parts)

    def __len__(self) -> int:
        """How many mailboxes have such messages."""
        return sum(map(len, self.parts))

    def changed(self, groups: Mapping[UUID, Mapping[Slot, OpenFinding]]) -> MessagesByGroup:
        """A copy with all findings of these groups replaced; empty groups are left out."""
        parts = list(self.parts)
        copied: dict[int, dict[UUID, tuple[OpenFinding, ...]]] = {}
        for group, found in groups.items():
            number = _part_of(group)
            if number not in copied:
                parts[number] = copied[number] = dict(parts[number])
            counted_apart = (each for each in found.values() if each.is_counted_apart)
            if some := tuple(islice(counted_apart, MOST + 1)):
                copied[number][group] = some
            else:
                copied[number].pop(group, None)
        return MessagesByGroup(tuple(parts))


def _part_of(group: UUID) -> int:
    return group.int % PARTS
