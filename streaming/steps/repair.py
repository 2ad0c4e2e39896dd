"""Step 6: the journal first, then the guarded write. A later look verifies it.

A table that refuses is parked (`parking`). In each batch one suspect tries a write there, and comes
back one delay later. The others are not confirmed, have no finding of their own, and come back
after one to two `recheck_interval`s.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from checkpoints.journal import Journal
from reconcilers.declared.family import Projection
from reconcilers.declared.writes import Write
from reconcilers.rows.finding import Action, Finding, State
from reconcilers.words.errors import Refused
from reconcilers.words.model import Kind, Micros, Suspect, Wake
from reconcilers.words.waiting import Wait, Waiting
from streaming.steps.confirmed_suspect import ConfirmedSuspect
from streaming.steps.outcome import Outcome
from streaming.steps.parking import REFUSES, Parking
from streaming.steps.ports import WriteTables

WRITTEN = frozenset({Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW})
"""Kinds of difference that a look finds and a write repairs."""
CONFIRMED_TOGETHER = 100
"""Suspects confirmed under one C: few, so that the writes follow the reads closely."""

Suspects = Sequence[Suspect]


class LastWrite(Enum):
    """The result of the previous write in the same batch."""

    NONE = auto()
    TAKEN = auto()
    REFUSED = auto()


@dataclass(slots=True)
class Repairer:
    """Sends one batch's repairs of one projection. ``publish`` sends keys to the suspects topic.

    ``recheck_interval`` (µs): a row that is held alone is looked at again after it.
    """

    projection: Projection
    tables: WriteTables
    journal: Journal
    parking: Parking
    publish: Callable[[Iterable[Wake]], None]
    clock: Callable[[], Micros]
    recheck_interval: Micros
    _last: LastWrite = LastWrite.NONE

    def rotated(self, suspects: Sequence[Suspect], batch: str) -> Sequence[Suspect]:
        """The suspects, in an order that starts elsewhere in each batch if the table is parked.

        A row that any table would refuse therefore does not keep the others waiting for ever.
        """
        self._last = LastWrite.NONE
        self.parking.recall(self.projection.name)
        if not self._parked:
            return suspects
        first = zlib.crc32(batch.encode()) % len(suspects)
        return [*suspects[first:], *suspects[:first]]

    @property
    def refuses_writes(self) -> bool:
        """Whether the table is known to refuse writes."""
        parked = self.parking.parked(self.projection.name)
        return parked is not None and parked.kind is Kind.TABLE_REFUSES

    @property
    def waits_for_table(self) -> bool:
        """Whether `send` writes nothing: the table is parked, and was tried in this batch."""
        return self._parked and self._last is not LastWrite.NONE

    @property
    def _parked(self) -> bool:
        return self.parking.parked(self.projection.name) is not None

    def send(
        self,
        case: ConfirmedSuspect,
        finding: Finding,
        writes: tuple[Write, ...],
        paused: Callable[[], Waiting | None],
    ) -> Iterator[Outcome]:
        """Write what repairs this finding, unless its table is known to refuse.

        ``paused`` is called last, after the journal is written; on a reason the repair is held.
        """
        if self.waits_for_table:
            yield from self._wait(case, finding.kind, case.previous)
            return
        intended = replace(finding, state=State.INTENDED, writes=writes)
        self.journal.put(intended)
        why = paused()
        if why is not None:
            yield self._hold(case.as_tried_before(intended), why)
            return
        try:
            self.tables.apply(writes)
        except Refused as refused:
            yield from self._refused(case, intended, refused)
            return
        self._last = LastWrite.TAKEN
        yield from self._freed(self.parking.took_a_write(self.projection.name))
        self.publish([case.wake(intended.kind)])
        yield Outcome(case.slot, Action.REPAIR, intended, at=self.clock())

    def unreadable(self, suspects: Iterable[Suspect], refused: Refused) -> Iterator[Outcome]:
        """Report a table that could not be read, and publish its suspects again."""
        self.publish([each.wake(each.kind) for each in suspects])  # a read ends the finding
        name, table = self.projection.name, self.projection.table
        yield from self._parked_now(self.parking.refuses_reads(name, table, refused))

    def readable(self) -> Iterator[Outcome]:
        """Report that the table was read, if it could not be read before."""
        yield from self._freed(self.parking.was_read(self.projection.name))

    def _freed(self, freed: Finding | None) -> Iterator[Outcome]:
        if freed is not None:
            yield Outcome(freed.slot, Action.CLOSE, freed, State.HEALED, self.clock())

    def _parked_now(self, parked: Finding | None) -> Iterator[Outcome]:
        if parked is not None:
            yield Outcome(parked.slot, Action.REPORT, parked, at=self.clock())

    def _refused(
        self, case: ConfirmedSuspect, intended: Finding, refused: Refused
    ) -> Iterator[Outcome]:
        """Park the table, or hold the row alone if the table has just taken another write."""
        taken, self._last = self._last is LastWrite.TAKEN, LastWrite.REFUSED
        held_by_itself = case.previous is not None and case.previous.wait is Wait.ROW
        if not self._parked and (taken or held_by_itself):
            why = Waiting(Wait.ROW, f"its table takes others, not this: {refused}")
            yield self._hold(intended, why)
            return
        name, table = self.projection.name, self.projection.table
        yield from self._parked_now(self.parking.refuses_writes(name, table, refused))
        yield from self._wait(case, intended.kind, intended)

    def _hold(self, intended: Finding, why: Waiting) -> Outcome:
        """Hold the row until its next look; a refused write counts as a failed attempt."""
        next_look = self.clock() + self.recheck_interval
        held = replace(intended, state=State.HELD, waits=why, next_look=next_look)
        self.journal.put(held)
        return Outcome(intended.slot, Action.KEEP, held)

    def later(self, suspects: Sequence[Suspect]) -> Iterator[Outcome]:
        """Put suspects of a refusing table off; they cost nothing until they come back."""
        slots = [each.slot for each in suspects]
        open_ones = self.journal.recall(self.parking.family, self.projection.name, slots)
        name = self.projection.name
        for slot in slots:
            standing = open_ones.get(slot)
            if standing is not None and standing.state in {State.REPORTED, State.STUCK}:
                continue  # it does not wait for the table, and has its own next look
            yield from self._given_up(standing, standing)
            yield Outcome(slot, Action.LOOK_LATER, None, projection=name)

    def _wait(
        self, case: ConfirmedSuspect, kind: Kind, standing: Finding | None
    ) -> Iterator[Outcome]:
        """Publish the key, which comes back one delay later to try again."""
        yield from self._given_up(standing, case.previous)
        self.publish([case.wake(kind)])
        name = self.projection.name
        yield Outcome(case.slot, Action.LOOK_AGAIN, None, projection=name, reason=REFUSES.why)

    def _given_up(self, standing: Finding | None, before: Finding | None) -> Iterator[Outcome]:
        """Close the finding of a row that waits for its table; one with a decision is kept."""
        held = None if standing is None else self.parking.give_up(standing)
        if held is not None:
            yield Outcome(held.slot, Action.KEEP, held)
        elif before is not None:
            yield Outcome(before.slot, Action.CLOSE, before, State.PARKED, self.clock())


def in_turn(waiting: Suspects, tries: int | None) -> tuple[Suspects, Suspects, Suspects]:
    """The suspects to examine next, those after them, and those only later as the table refuses.

    ``tries`` is None if the table takes writes. If it refuses, ``tries`` (0 or 1) suspects that
    differ go first, and the other ones that differ are not confirmed.
    """
    if tries is None:
        return waiting[:CONFIRMED_TOGETHER], waiting[CONFIRMED_TOGETHER:], ()
    differ = [each for each in waiting if each.kind in WRITTEN]
    others = [each for each in waiting if each.kind not in WRITTEN]
    if tries and differ:
        return differ[:1], [*differ[1:], *others], ()
    return others[:CONFIRMED_TOGETHER], others[CONFIRMED_TOGETHER:], differ
