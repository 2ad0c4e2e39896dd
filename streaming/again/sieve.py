"""Sifts what a sweep finds: one finding reports a difference that very many rows have.

::

    suspects of a piece ─▶ counted by pattern ─▶ handed over │ wait │ left: one finding for all

A piece is done when all its suspects are handed over or left. A pattern waits only in fewer than
1,000 rows that are more than 1 % of all: fewer than 100,000 rows, which are compared again after a
crash. At the end of a table nothing waits.

Undecided rows of the past also wait. If they are more than a few, they are left with one finding
for each reason; else they are handed over at the end of the table.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from checkpoints.sweeps import RangeKey, SweepRecord, SweptRange
from reconcilers.declared.family import Family
from reconcilers.sweep.systematic import EXAMPLES, Extent, Fate, Pattern, Spread, fate, patterns_of
from reconcilers.words.model import Kind, Micros, Slot, Suspect
from streaming.again.past import LeftRows
from streaming.again.pieces import SweptPiece
from streaming.again.together import PastTogether, Systematic


class SuspectSink(Protocol):
    """Takes suspects; `streaming.again.hand_over.HandOver` is the real one."""

    def publish(self, suspects: Sequence[Suspect]) -> None:
        """Hand suspects over: durable when it returns."""

    def resume(self, suspects: int, since: Micros) -> None:
        """Count suspects that an earlier process handed over, at ``since`` (µs) or later."""

    def settled(self) -> bool:
        """Wait until the suspects handed over are settled; False if no stream settles them."""

    def revisit(self) -> None:
        """Hand over the unresolved findings, because lineage is complete now."""


@dataclass(slots=True)
class TableCount:
    """How many rows of one table were compared, and in how many each pattern was found.

    ``waiting`` are its pieces that are not done.
    """

    rows: int = 0
    found: Counter[Pattern] = field(default_factory=Counter)
    examples: dict[Pattern, list[Slot]] = field(default_factory=lambda: defaultdict(list))
    left: dict[Kind, LeftRows] = field(default_factory=dict)
    waiting: Sequence[WaitingPiece] = ()

    def add(self, family: Family, piece: SweptPiece) -> None:
        """Take in a piece."""
        self.rows += piece.rows
        for reason, some in piece.left.items():
            self.left.setdefault(reason, LeftRows(some.most)).merge(some)
        for suspect in piece.suspects:
            for pattern in patterns_of(family, suspect):
                self.found[pattern] += 1
                if len(self.examples[pattern]) < EXAMPLES:
                    self.examples[pattern].append(suspect.slot)

    def extents(self) -> Iterator[Extent]:
        """The extent of each pattern."""
        for pattern, found in self.found.items():
            yield Extent(pattern, found, self.rows, tuple(self.examples[pattern]))


@dataclass(frozen=True, slots=True)
class WaitingPiece:
    """A piece with suspects that are not yet handed over or left.

    ``swept`` is recorded when it is done; None if some of it could not be read or looked at.
    ``past`` are rows of the past, by the reason for which they may be left.
    """

    place: RangeKey
    swept: SweptRange | None
    suspects: Sequence[Suspect]
    past: Mapping[Kind, Sequence[Suspect]] = field(default_factory=dict)

    @classmethod
    def of(cls, piece: SweptPiece) -> WaitingPiece:
        """A swept piece with all its suspects."""
        unknown = piece.unread or piece.unreadable
        swept = None if unknown else SweptRange(piece.rows, piece.differ, len(piece.piece.numbers))
        past = {reason: some.suspects for reason, some in piece.left.items()}
        return cls((piece.piece.table, piece.piece.numbers.start), swept, piece.suspects, past)


@dataclass(slots=True)
class Sieve:
    """The sieve of one family; call `begin` once a sweep."""

    family: Family
    sink: SuspectSink
    systematic: Systematic
    past: PastTogether
    _counts: defaultdict[str, TableCount] = field(default_factory=lambda: defaultdict(TableCount))

    def begin(self, sweep: SweepRecord, handed_over: int) -> None:
        """Read what a person has accepted, and what this sweep has reported before.

        ``handed_over`` counts the suspects of ranges that earlier processes completed.
        """
        if handed_over:
            self.sink.resume(handed_over, sweep.began_at)
        self.systematic.begin(sweep)
        self.past.begin(sweep)

    def take(self, pieces: Iterable[SweptPiece]) -> Mapping[RangeKey, SweptRange]:
        """Take in swept pieces; returns the ranges that are done now.

        Suspects handed over are durable then. Raises as the sink and the journal do.
        """
        done, tables = dict[RangeKey, SweptRange](), defaultdict[str, list[SweptPiece]](list)
        for each in pieces:
            tables[each.piece.table].append(each)
        for table, some in tables.items():
            done |= self._take(self._counts[table], some)
        return done

    def _take(
        self, count: TableCount, pieces: Sequence[SweptPiece]
    ) -> Mapping[RangeKey, SweptRange]:
        """Take in swept pieces of one table."""
        for each in pieces:
            count.add(self.family, each)
            self.past.handed_over += each.covered
        told = self.systematic
        spreads = {extent.pattern: told.spread(extent) for extent in count.extents()}
        for extent in count.extents():
            if spreads[extent.pattern] is Spread.SYSTEMATIC and extent.pattern not in told.told:
                told.tell(extent)
        for reason, left in count.left.items():
            if left.rows > self.past.most and reason not in self.past.told:
                self.past.tell(reason, left)
        return self._sifted(count, [*count.waiting, *map(WaitingPiece.of, pieces)], spreads)

    def table_ended(self, table: str) -> Mapping[RangeKey, SweptRange]:
        """Decide what waits at the end of a table; returns the ranges that are done now."""
        count, spreads, told = self._counts.pop(table, TableCount()), {}, self.systematic
        for each in count.extents():
            spread = told.spread(each)
            spreads[each.pattern] = Spread.RARE if spread is Spread.UNDECIDED else spread
            accepted, common = spread is Spread.ACCEPTED, each.spread is Spread.SYSTEMATIC
            before = told.told.get(each.pattern)
            if common and before is not None and each.found > before.found:
                told.tell(each)
            elif common and accepted and table == self.family.listing.table:
                told.told[each.pattern] = each  # rows handed over are not repaired yet
        for reason in self.past.told.keys() & count.left.keys():
            self.past.tell(reason, count.left[reason])
        few = count.left.keys() - self.past.told.keys()  # each row gets its own finding
        return self._sifted(count, count.waiting, spreads, few)

    def ended(self, sweep: SweepRecord) -> None:
        """Everything was compared: end the common findings that were not found again."""
        self.systematic.ended()
        self.past.ended(sweep)

    def lines(self) -> Iterator[str]:
        """A line for each finding that reports many rows."""
        yield from self.systematic.lines()
        yield from self.past.lines()

    def _sifted(
        self,
        count: TableCount,
        pieces: Iterable[WaitingPiece],
        spreads: Mapping[Pattern, Spread],
        few: Collection[Kind] = (),
    ) -> Mapping[RangeKey, SweptRange]:
        """Hand over or keep suspects; rows of the past for ``few`` reasons are handed over."""
        handed_over: list[Suspect] = []
        waiting, done = list[WaitingPiece](), dict[RangeKey, SweptRange]()
        for piece in pieces:
            wait = list[Suspect]()
            for suspect in piece.suspects:
                became = fate(spreads[each] for each in patterns_of(self.family, suspect))
                if became is not Fate.LEFT:
                    (wait if became is Fate.WAITS else handed_over).append(suspect)
            past = {
                reason: some for reason, some in piece.past.items() if reason not in self.past.told
            }
            for reason in past.keys() & few:
                handed_over += past.pop(reason)
            if wait or past:
                waiting.append(replace(piece, suspects=wait, past=past))
            elif piece.swept is not None:
                done[piece.place] = piece.swept
        self.sink.publish(handed_over)
        count.waiting = waiting
        return done
