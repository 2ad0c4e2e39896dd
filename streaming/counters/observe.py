"""One look at a counter: what it holds, what its mailboxes list, and in which round that was."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from uuid import UUID

from checkpoints.tallies import Rounds
from reconcilers.drift import Observation
from reconcilers.frontier import Proven
from reconcilers.model import Micros
from reconcilers.tally import Sums
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_row import CounterRow, Owners
from streaming.counters.ports import FrontierMarks, StoredTables
from streaming.counters.recount import Recount


@dataclass(slots=True)
class WholeLook:
    """A look that counts everything, in as many turns as it takes; it began at a time (µs).

    ``before`` is what the counter held at the last turn. So many ``changes`` have come out since
    the first one, when the nodes and tables were as ``watched``.
    """

    recount: Recount
    at: Micros
    round: int
    watched: str | None
    before: Sums | None = None
    turns: int = 0
    changes: int = 0


@dataclass(frozen=True, slots=True)
class CounterObserver:
    """Reads counters, and counts what they should be.

    ``frontier`` knows when all changes before an observation have come out, ``heard`` is told up
    to where they have.
    """

    tables: StoredTables
    counting: MailboxCounter
    owners: Owners
    rounds: Rounds
    frontier: FrontierMarks
    clock: Callable[[], Micros]
    heard: Callable[[Proven], None]

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

    def listed(self, mailboxes: Collection[UUID]) -> Sums:
        """What these mailboxes list, as far as is known: only chunks that changed are read."""
        return self.counting.sums(mailboxes)

    def by_chunks(self, counter: CounterRow, mailboxes: Collection[UUID]) -> Observation | None:
        """A look that counts the chunks that changed; None when the counter moved meanwhile."""
        return self._observe(counter, lambda: self.counting.sums(mailboxes))

    def begin_whole(self, counter: CounterRow, mailboxes: Collection[UUID]) -> WholeLook:
        """A look that compares every message with the truth."""
        began = self.clock()
        round_ = self.rounds.current(counter.tally.name, str(counter.key))  # before it is read
        recount = Recount(self.counting, sorted(mailboxes))
        return WholeLook(recount, began, round_, self.frontier.watched())

    def go_on(self, counter: CounterRow, look: WholeLook) -> Observation | None:
        """One turn of it; None while more is left, and when the counter moved in this last turn.

        In the turns before it may have moved: what changed since the look began counts as under
        way. Raises `Deferred` where a mailbox differs from the truth.
        """
        look.turns += 1
        look.before = self.stored(counter)
        look.recount.step()
        if look.recount.left:
            return None
        after = self.stored(counter)
        if look.before != after:
            return None
        stored = after or dict.fromkeys(counter.tally.cells, 0)
        return Observation(look.at, look.round, stored, look.recount.sums, whole=True)

    def count_again(self, mailboxes: Collection[UUID]) -> None:
        """Mark these mailboxes: after a restart they are looked at, though nothing has changed."""
        self.counting.tallies.mark(dict.fromkeys(mailboxes, ()), self.clock())

    def _observe(self, counter: CounterRow, count: Callable[[], Sums]) -> Observation | None:
        began = self.clock()
        round_ = self.rounds.current(counter.tally.name, str(counter.key))  # before it is read
        before, expected, after = self.stored(counter), count(), self.stored(counter)
        if before != after:
            return None
        return Observation(began, round_, after or dict.fromkeys(counter.tally.cells, 0), expected)
