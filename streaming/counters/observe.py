"""One observation of a counter: its stored sums, its mailboxes' sums, and its round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from checkpoints.tallies import Rounds
from reconcilers.capture.frontier import Proven
from reconcilers.counters.drift import Observation
from reconcilers.declared.tally import Sums
from reconcilers.words.model import Micros
from streaming.counters.count import MailboxCounter
from streaming.counters.counter_row import CounterRow, Owners
from streaming.counters.ports import FrontierMarks, StoredTables
from streaming.counters.recent_changes import RecentChanges
from streaming.counters.recount import Recount


@dataclass(slots=True)
class WholeLook:
    """A look that compares every message, in several turns; it began ``at`` a time (µs).

    The changes of ``past`` were released before its first turn, ``changes`` since then. ``watched``
    names the nodes and tables at its begin.
    """

    recount: Recount
    at: Micros
    round: int
    watched: str | None
    past: Counter[UUID]
    turns: int = 0
    changes: Counter[UUID] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class CounterObserver:
    """Reads counters, and counts what they should be.

    ``frontier`` gives the marks to wait for, ``recent`` the changes released lately, and ``heard``
    receives the frontier of each batch.
    """

    tables: StoredTables
    counting: MailboxCounter
    owners: Owners
    rounds: Rounds
    frontier: FrontierMarks
    clock: Callable[[], Micros]
    recent: RecentChanges
    heard: Callable[[Proven], None]

    def glance(self, stored: Sums, mailboxes: Collection[UUID]) -> Sums:
        """The error of stored sums at least, if nothing is in flight; reads changed chunks only."""
        listed, margin = self.counting.sums(mailboxes), self.counting.open.margin(mailboxes)
        return Observation(self.clock(), 0, stored, listed, margin=margin).off

    def by_chunks(self, counter: CounterRow, mailboxes: Collection[UUID]) -> Observation | None:
        """A look that counts changed chunks only; None when the counter moved meanwhile."""
        round_ = self.rounds.current(counter.tally.name, str(counter.key))  # before it is read
        counted = partial(self.counting.sums, mailboxes)
        return observed(self.tables, counter, self.counting, mailboxes, round_, counted)

    def begin_whole(self, counter: CounterRow, mailboxes: Collection[UUID]) -> WholeLook:
        """Begin a look that compares every message with the truth."""
        began = self.clock()
        round_ = self.rounds.current(counter.tally.name, str(counter.key))  # before it is read
        recount = Recount(self.counting, sorted(mailboxes))
        return WholeLook(
            recount, began, round_, self.frontier.watched(), self.recent.past(mailboxes)
        )

    def go_on(
        self, counter: CounterRow, mailboxes: Collection[UUID], look: WholeLook
    ) -> Observation | None:
        """Take one turn. Returns None while more is left, or if the counter moved in the last turn.

        It may move in earlier turns: changes since the begin count as in flight. Raises `Deferred`
        if a mailbox differs from the truth.
        """
        look.turns += 1
        found = observed(
            self.tables, counter, self.counting, mailboxes, look.round, look.recount.step
        )
        return None if found is None else replace(found, at=look.at, whole=True)


def observed(
    tables: StoredTables,
    counter: CounterRow,
    counting: MailboxCounter,
    mailboxes: Collection[UUID],
    round_: int,
    count: Callable[[], Sums | None],
) -> Observation | None:
    """Observe a counter in a round that was read before.

    Returns None if the counter moved meanwhile, if ``count`` is not finished (None), or if there is
    no row and a correction may not create one.
    """
    tally, key, began = counter.tally, counter.key, counting.clock()
    before, expected = tables.stored(tally, key), count()
    if expected is None:
        return None
    margin, after = counting.open.margin(mailboxes), tables.stored(tally, key)
    if before != after or (after is None and not tally.may_create_row):
        return None
    stored = after or dict.fromkeys(tally.cells, 0)
    return Observation(began, round_, stored, expected, margin=margin)
