"""One look at a counter: what it holds, what its mailboxes list, and in which round that was."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from uuid import UUID

from checkpoints.tallies import Rounds
from reconcilers.drift import Observation
from reconcilers.model import Micros
from reconcilers.tally import Sums
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_row import CounterRow, Owners
from streaming.counters.ports import FrontierMarks, StoredTables
from streaming.counters.recent_changes import RecentChanges


@dataclass(frozen=True, slots=True)
class CounterObserver:
    """Reads counters, and counts what they should be.

    ``frontier`` knows when all changes before an observation have come out, ``recent`` which had
    lately.
    """

    tables: StoredTables
    counting: MailboxCounter
    owners: Owners
    rounds: Rounds
    frontier: FrontierMarks
    clock: Callable[[], Micros]
    recent: RecentChanges

    def mailboxes(self, counter: CounterRow) -> frozenset[UUID]:
        """The mailboxes that a counter sums up; none when it does not exist (any more).

        Raises `Deferred` where that is in doubt.
        """
        return self.owners.mailboxes(counter)

    def mailboxes_anew(self, counter: CounterRow) -> frozenset[UUID]:
        """The same, their owners read again."""
        self.owners.read_again(counter)
        return self.owners.mailboxes(counter)

    def stored(self, counter: CounterRow) -> Sums | None:
        """What its row holds, None when there is none."""
        return self.tables.stored(counter.tally, counter.key)

    def glance(self, stored: Sums, mailboxes: Collection[UUID]) -> Sums:
        """By how much it is off, as far as is known: only chunks that changed are read."""
        listed, margin = self.counting.sums(mailboxes), self.counting.open.margin(mailboxes)
        return Observation(self.clock(), 0, stored, listed, margin=margin).off

    def by_chunks(self, counter: CounterRow, mailboxes: Collection[UUID]) -> Observation | None:
        """A look that counts the chunks that changed; None when the counter moved meanwhile."""
        return self._observe(counter, mailboxes, self.counting.sums)

    def whole(self, counter: CounterRow, mailboxes: Collection[UUID]) -> Observation | None:
        """A look that compares every message with the truth; None when the counter moved meanwhile.

        Raises `Deferred` where a mailbox differs from the truth.
        """
        observed = self._observe(counter, mailboxes, self.counting.recounted)
        return None if observed is None else replace(observed, whole=True)

    def count_again(self, mailboxes: Collection[UUID]) -> None:
        """Mark these mailboxes: after a restart they are looked at, though nothing has changed."""
        self.counting.tallies.mark(dict.fromkeys(mailboxes, ()), self.clock())

    def _observe(
        self,
        counter: CounterRow,
        mailboxes: Collection[UUID],
        count: Callable[[Collection[UUID]], Sums],
    ) -> Observation | None:
        began = self.clock()
        round_ = self.rounds.current(counter.tally.name, str(counter.key))  # before it is read
        before, expected = self.stored(counter), count(mailboxes)
        margin, after = self.counting.open.margin(mailboxes), self.stored(counter)
        if before != after:
            return None
        stored = after or dict.fromkeys(counter.tally.cells, 0)
        return Observation(began, round_, stored, expected, margin=margin)
