"""How many changes each mailbox had, in arrays: a large batch has 200,000 mailboxes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.bytes_]
Uints = NDArray[np.uint32]
FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F], np.uint32)
"""Odd, so that mailboxes that differ in one of the four parts of their id have other numbers."""
Item = TypeVar("Item", bound=np.generic)
_HALF = np.uint64(32)
ID = np.dtype("S16")


def _ids(mailboxes: Collection[UUID]) -> Ids:
    return np.frombuffer(b"".join(each.bytes for each in mailboxes), ID)


def _numbers(ids: Ids) -> Uints:
    """A number of 32 bits for each id."""
    parts = ids.view(np.uint32).reshape(-1, FACTORS.size)
    numbers: Uints = (parts * FACTORS).sum(axis=1, dtype=np.uint32)
    return numbers


def _each_once(keys: NDArray[Item], counts: Uints) -> tuple[NDArray[Item], Uints]:
    """Each key once, in order, with its sum."""
    order = np.argsort(keys)
    return _summed(keys[order], counts[order])


def _as_one(numbers: Uints, counts: Uints) -> NDArray[np.uint64]:
    return (numbers.astype(np.uint64) << _HALF) | counts


def _summed(keys: NDArray[Item], counts: Uints) -> tuple[NDArray[Item], Uints]:
    """Sums up the counts of equal keys, which follow one another; there may be none."""
    if not len(keys):
        return keys, counts
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[first], np.add.reduceat(counts, first, dtype=np.uint32)


@dataclass(slots=True, eq=False)
class MailboxChanges(Mapping[UUID, int]):
    """The number of changes by mailbox, 20 bytes for each. It is pickled with each mailbox once."""

    parts: list[tuple[Ids, Uints]] = field(default_factory=list)

    @classmethod
    def of(cls, changes: Mapping[UUID, int]) -> Self:
        """Those of another mapping."""
        made = cls()
        made.update(changes)
        return made

    def update(self, changes: Mapping[UUID, int]) -> None:
        """Add the changes of others."""
        if isinstance(changes, MailboxChanges):
            self.parts += changes.parts
        elif changes:
            counts = np.fromiter(changes.values(), np.uint32, len(changes))
            self.parts.append((_ids(changes), counts))

    def numbered(self) -> NumberedChanges:
        """The same by a number of each mailbox."""
        return NumberedChanges.sum_of((_numbers(ids), counts) for ids, counts in self.parts)

    def _whole(self) -> tuple[Ids, Uints]:
        if not self.parts:
            return np.empty(0, ID), np.empty(0, np.uint32)
        if len(self.parts) > 1:
            ids, counts = zip(*self.parts, strict=True)
            self.parts = [_each_once(np.concatenate(ids), np.concatenate(counts))]
        return self.parts[0]

    def __getstate__(self) -> list[tuple[Ids, Uints]]:
        return [self._whole()]

    def __setstate__(self, parts: list[tuple[Ids, Uints]]) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return len(self._whole()[0])

    def __iter__(self) -> Iterator[UUID]:
        raw = self._whole()[0].tobytes()
        for at in range(0, len(raw), ID.itemsize):
            yield UUID(bytes=raw[at : at + ID.itemsize])

    def __getitem__(self, mailboxid: UUID) -> int:
        ids, counts = self._whole()
        (found,) = np.nonzero(ids == _ids([mailboxid])[0])
        if not len(found):
            raise KeyError(mailboxid)
        return int(counts[found[0]])


@dataclass(frozen=True, slots=True)
class NumberedChanges:
    """The number of changes by a number of the mailbox, in order: 8 bytes for each.

    If two mailboxes have the same number (one pair in four billion), each has the changes of both:
    more changes in flight only make a counter wait.
    """

    numbers: Uints
    counts: Uints

    @classmethod
    def of(cls, changes: Mapping[UUID, int]) -> NumberedChanges:
        """The changes of these mailboxes."""
        packed = changes if isinstance(changes, MailboxChanges) else MailboxChanges.of(changes)
        return packed.numbered()

    @classmethod
    def sum_of(cls, parts: Iterable[tuple[Uints, Uints]]) -> NumberedChanges:
        """The sum of parts in any order."""
        some = list(parts)
        if not some:
            return cls(np.empty(0, np.uint32), np.empty(0, np.uint32))
        both = np.concatenate([_as_one(*each) for each in some])
        both.sort()  # much faster than to sort numbers and to take counts in their order
        numbers, counts = (both >> _HALF).astype(np.uint32), both.astype(np.uint32)
        return cls(*_summed(numbers, counts))

    def and_of(self, others: NumberedChanges) -> NumberedChanges:
        """Both together."""
        return self.sum_of(((self.numbers, self.counts), (others.numbers, others.counts)))

    def among(self, mailboxes: Collection[UUID]) -> dict[UUID, int]:
        """The changes of these mailboxes, as far as they have some."""
        if not mailboxes or not len(self.numbers):
            return {}
        wanted = _numbers(_ids(mailboxes))
        places = np.minimum(np.searchsorted(self.numbers, wanted), len(self.numbers) - 1)
        there = self.numbers[places] == wanted
        counts = self.counts[places].tolist()
        pairs = zip(mailboxes, counts, there.tolist(), strict=True)
        return {mailboxid: count for mailboxid, count, is_there in pairs if is_there}
