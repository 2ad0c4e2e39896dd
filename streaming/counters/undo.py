"""Undoes the correction of a counter: adds the opposite delta, once, under a round of its own.

Users' changes commute with it, but another correction would not: an undo is refused if a later
round was claimed, and a hold on the counter stops corrections meanwhile. The round of an undo that
was held before it was added does not count. A delta leaves no trace, so a correction is undone only
if the server acknowledged it.

Of a finding that was corrected several times only the last correction is undone. The counter was as
wrong as at first before each of them, so the earlier ones no longer stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from checkpoints.journal import Journal
from checkpoints.pauses import Resumed
from checkpoints.tallies import Rounds
from reconcilers.declared.family import Family
from reconcilers.declared.tally import Sum, Sums, Tally
from reconcilers.declared.writes import AddToCounter
from reconcilers.limits.hold import Hold
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.undo import NO_REPAIR, UNDO, told
from reconcilers.words.errors import Refused
from reconcilers.words.model import Row
from streaming.counters.ports import AddTables
from streaming.steps.undo import Undoing, Undone

NOT_KNOWN = "whether the correction was applied is not known: it is looked at again automatically"
AGAIN = "another correction, or an undo, was sent since"
GONE = "there is no such counter any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterUndo:
    """Undoes corrections of one family's tallies.

    ``stopped`` returns why a tally may not be corrected now: a missing node, a pause, a breaker.
    """

    family: Family
    tables: AddTables
    journal: Journal
    rounds: Rounds
    stopped: Callable[[Tally], str | None]
    clock: Callable[[], int]

    def plan(self, repair: Finding) -> tuple[AddToCounter, ...] | str:
        """What would be added, or why the undo is refused. Only reads."""
        writes = [each for each in repair.writes if isinstance(each, AddToCounter)]
        if not writes:
            return NO_REPAIR
        sent = writes[-1]
        refused = self._not_kept(sent.tally) or self.stopped(sent.tally)
        if refused is not None:
            return refused
        if not self._was_taken(repair):
            return NOT_KNOWN
        current = self.rounds.current(sent.tally.name, str(sent.key))
        if current != sent.round and current not in self._never_added(repair):
            return AGAIN
        return self._opposite(replace(sent, round=current), repair.before)

    def _never_added(self, repair: Finding) -> set[int]:
        """The rounds of undos that were claimed, and held before they were added."""
        name, slot = repair.projection, repair.slot
        return {
            write.round
            for line in self.journal.history(self.family, name, slot, repair.found_at)
            if line.batch == UNDO and line.state is State.HELD
            for write in line.writes
            if isinstance(write, AddToCounter)
        }

    def _not_kept(self, tally: Tally) -> str | None:
        if tally.name not in self.family.names:
            return f"{tally.name} is not among tally.projections"
        if tally.table not in {each.table for each in self.family.tallies}:
            return f"it was added to {tally.table}, which is not kept any more"
        return None

    def _opposite(self, sent: AddToCounter, before: Row | None) -> tuple[AddToCounter, ...] | str:
        stored = self.tables.stored(sent.tally, sent.key)
        if stored is None:
            return GONE
        deltas = {each: -delta for each, delta in sent.deltas.items()}
        below = [
            each
            for each, delta in deltas.items()
            if stored[each] + delta < min(0, _shown(before, each))
        ]
        if below:
            return f"{' and '.join(below)} would be below zero: much has changed since"
        return (replace(sent, round=sent.round + 1, deltas=deltas),)

    def carry_out(self, repair: Finding, hold: Hold) -> Undone:
        """Undo a correction. Raises `Retryable` if the outcome is unknown; the hold stays then."""
        planned = self.plan(repair)
        if isinstance(planned, str):
            return Undone(Undoing.REFUSED, planned)
        self.journal.holds.place(hold)
        refused = self._send(repair, hold)
        if refused is not None:
            self.journal.holds.withdraw(hold, Resumed(self.clock(), hold.who, refused))
            return Undone(Undoing.REFUSED, refused)
        done = told(repair, hold, "its opposite was added", self.clock())
        self.journal.end(done, State.UNDONE)
        return Undone(Undoing.DONE, done.sentence)

    def _send(self, repair: Finding, hold: Hold) -> str | None:
        """Plan again under the hold, and add; why it is refused, None when it was added."""
        planned = self.plan(repair)
        if isinstance(planned, str):
            return planned
        [write] = planned
        stored = self.tables.stored(write.tally, write.key)
        if not self.rounds.claim(write.tally.name, str(write.key), write.round - 1):
            return AGAIN
        intended = told(repair, hold, "to be added", self.clock())
        intended = replace(intended, writes=planned, before=_row(stored))
        self.journal.end(intended, State.UNDOING)
        why = self.stopped(write.tally) or self._added(write)
        if why is not None:
            kept = told(repair, hold, f"not added: {why}", self.clock())
            self.journal.end(replace(kept, writes=planned), State.HELD)
        return why

    def _added(self, write: AddToCounter) -> str | None:
        try:
            self.tables.add(write)
        except Refused as refused:
            return f"its table refuses: {refused}"
        return None

    def _was_taken(self, repair: Finding) -> bool:
        """Whether the server acknowledged it: an attempt was counted after the intent."""
        name, slot = repair.projection, repair.slot
        standing = self.journal.recall(self.family, name, [slot]).get(slot)
        last = standing if standing is not None and standing.writes == repair.writes else repair
        for line in self.journal.history(self.family, name, slot):
            if line.writes == repair.writes and line.state is State.INTENDED:
                return last.attempts > line.attempts
        return False


def _shown(before: Row | None, of: Sum) -> int:
    """The sum that the counter held before its correction, 0 if that is not known."""
    value = None if before is None else before.get(str(of))
    return value if isinstance(value, int) else 0


def _row(stored: Sums | None) -> Row | None:
    return None if stored is None else Row({str(each): value for each, value in stored.items()})
