"""The workload's own book: what its changes add up to, and how often each was counted. Pure."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from deploy.mailserver.history import CounterWrite

Sums = Mapping[str, int]
"""A mailbox's numbers by column: count and unseen."""
Stored = Mapping[UUID, Sums]
"""What a table holds, by mailbox; a mailbox without a row may be missing."""


class Book:
    """What each mailbox should come to. Safe for threads."""

    def __init__(self) -> None:
        self.meant: defaultdict[UUID, Counter[str]] = defaultdict(Counter)
        self._lock = threading.Lock()

    def enter(self, write: CounterWrite) -> None:
        """A user has changed a message: this should be counted, whatever becomes of it."""
        assert isinstance(write.owner, UUID), "mailboxes only"
        with self._lock:
            self.meant[write.owner].update(write.added)

    def errors(self, stored: Stored) -> dict[UUID, Counter[str]]:
        """Stored minus meant of each mailbox that is not exact."""
        found = {}
        for mailboxid in self.meant.keys() | stored.keys():
            off = Counter(stored.get(mailboxid, {}))
            off.subtract(self.meant.get(mailboxid, Counter()))
            if wrong := Counter({column: number for column, number in off.items() if number}):
                found[mailboxid] = wrong
        return found


@dataclass(frozen=True)
class Verdict:
    """Of how many changes a table has counted some not at all, some more than once."""

    changes: int
    lost: int
    doubled: int

    def __add__(self, other: "Verdict") -> "Verdict":
        return Verdict(
            self.changes + other.changes, self.lost + other.lost, self.doubled + other.doubled
        )


def verdict(marked: Iterable[CounterWrite], stored: Stored) -> Verdict:
    """What became of each change, read from the table alone: see `workload.marked`."""
    numbers: Counter[UUID] = Counter()
    times: Counter[int] = Counter()
    for write in marked:
        assert isinstance(write.owner, UUID), "mailboxes only"
        times[times_counted(stored.get(write.owner, {}).get("count", 0), numbers[write.owner])] += 1
        numbers[write.owner] += 1
    return Verdict(times.total(), times[0], times.total() - times[0] - times[1])


def times_counted(count: int, place: int) -> int:
    """How often the change at this place among its mailbox's was counted, from 0 to 3."""
    return count >> (2 * place) & 3
