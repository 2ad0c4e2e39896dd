"""Undo: a person takes back a repair. The hold first, the journal second, then the guarded write.

As with repairs, the order is the guard. The hold keeps every stream from repairing the key again:
each reads it right before its write. Then the row is read, and the undo is written to the journal
with the before-image, before it is sent. The row is read again after that. Only what was seen then
is reported as undone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from checkpoints.journal import Journal
from checkpoints.lineage import Lineage
from checkpoints.pauses import Resumed
from reconcilers.declared.family import Family, Projection
from reconcilers.declared.writes import Write
from reconcilers.limits.hold import Hold
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.undo import stands, together, told, tries_of, undo
from reconcilers.words.errors import Refused
from reconcilers.words.iso import iso
from reconcilers.words.model import KeyValue, Kind, Micros, Row, Slot
from streaming.steps.own_deletes import RememberedWrites
from streaming.steps.ports import WriteTables

BEFORE = "the before-image is back"
NOT_SEEN = "written, but something newer is there: it stays"


class UndoTables(WriteTables, Protocol):
    """The reads and writes of an undo."""

    def projection_with_times(
        self, projection: Projection, slots: Sequence[Slot]
    ) -> Mapping[Slot, Row]:
        """The projection's rows with write times (µs)."""

    def truth_serially(self, sources: Iterable[KeyValue]) -> Mapping[KeyValue, tuple[Row, ...]]:
        """All truth rows of each source at serial consistency; sources without are left out."""


class Undoing(Enum):
    """How an undo ended."""

    DONE = "undone"
    REFUSED = "refused"
    OVERTAKEN = "overtaken"


@dataclass(frozen=True, slots=True)
class Undone:
    """How one undo ended, and why. Unless it was refused, the key stays on hold."""

    what: Undoing
    sentence: str


@dataclass(frozen=True, slots=True)
class RowUndo:
    """Undoes repairs of rows of one family, which is bound to the cluster's schema.

    ``paused`` says why a person has paused such a write, or returns None.
    """

    family: Family
    tables: UndoTables
    journal: Journal
    lineage: Lineage
    paused: Callable[[Projection, Kind], str | None]
    clock: Callable[[], Micros]

    def plan(self, repair: Finding) -> tuple[Write, ...] | str:
        """The writes of the undo, or why it is refused. Only reads."""
        return self._plan(self._tries(repair))

    def carry_out(self, repair: Finding, hold: Hold) -> Undone:
        """Undo it. Raises `Retryable` if it may or may not be written; the hold then stays."""
        tries = self._tries(repair)
        planned = self._plan(tries)
        if isinstance(planned, str):
            return Undone(Undoing.REFUSED, planned)
        self.journal.holds.place(hold)
        refused = self._write(tries, hold)
        if refused is not None:
            self.journal.holds.withdraw(hold, Resumed(self.clock(), hold.who, refused))
            return Undone(Undoing.REFUSED, refused)
        whole = together(tries)
        seen = stands(whole, self._row(whole))
        done = told(whole, hold, BEFORE if seen else NOT_SEEN, self.clock())
        self.journal.end(done, State.UNDONE if seen else State.SUPERSEDED)
        return Undone(Undoing.DONE if seen else Undoing.OVERTAKEN, done.sentence)

    def _tries(self, repair: Finding) -> tuple[Finding, ...]:
        """The tries of the repair's finding, oldest first."""
        since = repair.found_at
        return tries_of(
            repair, self.journal.history(self.family, repair.projection, repair.slot, since)
        )

    def _plan(self, tries: tuple[Finding, ...]) -> tuple[Write, ...] | str:
        name = tries[-1].projection
        if all(each.name != name for each in self.family.projections):
            return f"{name} is not among repair.projections"
        whole = together(tries)
        return self._paused(whole) or self._undo(tries, self._row(whole))

    def _undo(self, tries: tuple[Finding, ...], row: Row | None) -> tuple[Write, ...] | str:
        """The writes that undo the tries, given the row; or why that is refused.

        Where no cell has a write time, a row that was changed and changed back looks as it was
        left: then the truth must be as old as the repair, too.
        """
        writes, projection = undo(tries, row), self._projection(tries[-1])
        timeless = projection.sets == {*projection.columns} and projection.collects is None
        if isinstance(writes, str) or projection.is_index or not timeless:
            return writes
        truth = self.tables.truth_serially(self.family.named_by(tries[-1].slot))
        written = (at for rows in truth.values() for each in rows for at in each.written.values())
        newest, source = max(written, default=0), self.family.truth.source.label
        if newest >= max(each.at for each in writes):
            return f"its {source} has changed since the repair, at {iso(newest)}: that stays"
        return writes

    def _write(self, tries: tuple[Finding, ...], hold: Hold) -> str | None:
        """Judge the row again under the hold and write. Returns why it was refused, or None."""
        whole = together(tries)
        row = self._row(whole)
        writes = self._undo(tries, row)
        if isinstance(writes, str):
            return writes
        intended = told(whole, hold, "to be written", self.clock())
        intended = replace(intended, writes=writes, before=row)
        self.journal.end(intended, State.UNDOING)
        why = self._paused(whole) or self._sent(writes)
        if why is not None:
            kept = told(whole, hold, f"not written: {why}", self.clock())
            self.journal.end(kept, State.HELD)
        return why

    def _sent(self, writes: tuple[Write, ...]) -> str | None:
        try:
            RememberedWrites(self.tables, self.lineage, self.clock).apply(writes)
        except Refused as refused:
            return f"its table refuses: {refused}"
        return None

    def _paused(self, whole: Finding) -> str | None:
        return self.paused(self._projection(whole), _kind(whole))

    def _projection(self, repair: Finding) -> Projection:
        return next(each for each in self.family.projections if each.name == repair.projection)

    def _row(self, repair: Finding) -> Row | None:
        projection = self._projection(repair)
        return self.tables.projection_with_times(projection, [repair.slot]).get(repair.slot)


OPPOSITE = {Kind.MISSING_ROW: Kind.EXTRA_ROW, Kind.EXTRA_ROW: Kind.MISSING_ROW}


def _kind(repair: Finding) -> Kind:
    """The kind that a pause applies to: to take back an added row is a removal."""
    return OPPOSITE.get(repair.kind, repair.kind)
