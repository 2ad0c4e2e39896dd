"""Between what a sweep finds and the stream: what is systematic is told once, and left.

::

    suspects of a piece ─▶ counted by pattern ─▶ handed over │ wait │ left: one finding for all

A piece is done when all of its suspects are handed over or left. What waits is little: a pattern in
fewer than 1,000 rows that are more than 1 % of all means that fewer than 100,000 were compared. So
much is compared again after a crash. At the end of a table nothing waits any more.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from checkpoints.journal import Journal
from checkpoints.sweeps import Place, SweepRecord, SweptRange
from reconcilers.family import Family
from reconcilers.finding import Finding, State
from reconcilers.key import text_of
from reconcilers.model import Kind, Micros, Slot, Suspect
from reconcilers.systematic import (
    EXAMPLES,
    Extent,
    Fate,
    Pattern,
    Spread,
    fate,
    patterns_of,
    place_of,
    systematic,
)
from streaming.again.scan import SweptPiece

log = logging.getLogger("reconciler")


class SuspectSink(Protocol):
    """Where suspects go; `streaming.again.hand_over.HandOver` is the real one."""

    def publish(self, suspects: Sequence[Suspect]) -> None:
        """Hand them over: durable when it returns."""

    def resume(self, suspects: int, since: Micros) -> None:
        """A process that has ended handed so many over, the first at ``since`` (µs) or later."""

    def settled(self) -> bool:
        """Wait until what was handed over is settled; False where nobody does that now."""

    def revisit(self) -> None:
        """Hand over what was left unresolved: memory is whole now."""


@dataclass(slots=True)
class TableCount:
    """What was compared of one table so far, and in how many rows each pattern was found."""

    rows: int = 0
    found: Counter[Pattern] = field(default_factory=Counter)
    examples: dict[Pattern, list[Slot]] = field(default_factory=lambda: defaultdict(list))

    def add(self, family: Family, piece: SweptPiece) -> None:
        """Take in a piece."""
        self.rows += piece.rows
        for suspect in piece.suspects:
            for pattern in patterns_of(family, suspect):
                self.found[pattern] += 1
                if len(self.examples[pattern]) < EXAMPLES:
                    self.examples[pattern].append(suspect.slot)

    def extents(self) -> Iterator[Extent]:
        """Of each pattern."""
        for pattern, found in self.found.items():
            yield Extent(pattern, found, self.rows, tuple(self.examples[pattern]))


@dataclass(frozen=True, slots=True)
class WaitingPiece:
    """A piece with suspects of which it is not known yet whether they are handed over or left.

    ``swept`` is what is recorded of it then; None where some of it could not be read, or looked at.
    """

    place: Place
    swept: SweptRange | None
    suspects: Sequence[Suspect]

    @classmethod
    def of(cls, piece: SweptPiece) -> WaitingPiece:
        """With all of its suspects."""
        unknown = piece.unread or piece.unreadable
        swept = None if unknown else SweptRange(piece.rows, len(piece.suspects))
        return cls((piece.piece.table, piece.piece.number), swept, piece.suspects)


@dataclass(slots=True)
class Sieve:
    """Of one family; `begin` once a sweep. ``told`` are the patterns that it has told of.

    What a sweep was told to be systematic before it was ended, and goes on with, stays so.
    """

    family: Family
    sink: SuspectSink
    journal: Journal
    clock: Callable[[], Micros]
    told: dict[Pattern, Extent] = field(default_factory=dict)
    _standing: dict[tuple[str, Slot], Spread] = field(default_factory=dict)
    _count: TableCount = field(default_factory=TableCount)
    _waiting: Sequence[WaitingPiece] = ()

    def begin(self, sweep: SweepRecord, handed_over: int) -> None:
        """Read what a person has accepted, and what this sweep has told of already.

        ``handed_over`` are the suspects of ranges that were done by processes that have ended.
        """
        if handed_over:
            self.sink.resume(handed_over, sweep.began_at)
        for each in self._findings():
            if each.accepted:
                self._standing[each.projection, each.slot] = Spread.ACCEPTED
            elif each.tried_at >= sweep.began_at:
                self._standing[each.projection, each.slot] = Spread.SYSTEMATIC

    def take(self, pieces: Iterable[SweptPiece]) -> Mapping[Place, SweptRange]:
        """Take in what was found in these; returns the ranges that are done by now.

        What is handed over is durable then. Raises as the sink and the journal do.
        """
        some = list(pieces)
        for each in some:
            self._count.add(self.family, each)
        spreads = {extent.pattern: self._spread(extent) for extent in self._count.extents()}
        for extent in self._count.extents():
            if spreads[extent.pattern] is Spread.SYSTEMATIC and extent.pattern not in self.told:
                self._tell(extent)
        return self._sifted([*self._waiting, *map(WaitingPiece.of, some)], spreads)

    def table_ended(self, table: str) -> Mapping[Place, SweptRange]:
        """All of a table was taken in: nothing waits any more; returns as `take`."""
        spreads = {}
        for each in self._count.extents():
            spread = self._spread(each)
            spreads[each.pattern] = Spread.RARE if spread is Spread.UNDECIDED else spread
            accepted, common = spread is Spread.ACCEPTED, each.spread is Spread.SYSTEMATIC
            before = self.told.get(each.pattern)
            if common and before is not None and each.found > before.found:
                self._tell(each)
            elif common and accepted and table == self.family.listing.table:
                self.told[each.pattern] = each  # what was handed over is not repaired yet
        done = self._sifted(self._waiting, spreads)
        self._count = TableCount()
        return done

    def ended(self) -> None:
        """Everything was compared: what is systematic no more is no finding any more."""
        still = {(each.projection, place_of(self.family, each)) for each in self.told}
        for each in self._findings():
            if (each.projection, each.slot) not in still:
                self.journal.close(each, State.HEALED, self.clock())
                log.info("%s: %s", State.HEALED.value, each.sentence)

    def lines(self) -> Iterator[str]:
        """What is systematic, a line each."""
        for pattern, extent in sorted(self.told.items()):
            place = place_of(self.family, pattern)
            if self._standing.get((pattern.projection, place)) is Spread.ACCEPTED:
                yield f"systematic: {extent}: accepted, and handed over"
            else:
                accept = f"--accept {text_of(place)} --system {pattern.projection}"
                yield f"systematic: {extent}: left, until `reconcile findings {accept}`"

    def settled(self) -> bool:
        """Wait until what was handed over is settled; False where nobody does that now."""
        return self.sink.settled()

    def revisit(self) -> None:
        """Hand over what was left unresolved: memory is whole now."""
        self.sink.revisit()

    def _findings(self) -> list[Finding]:
        found = self.journal.open_findings(self.family)
        return [each for each in found if each.kind is Kind.SYSTEMATIC]

    def _spread(self, extent: Extent) -> Spread:
        """What was systematic once stays so in this sweep."""
        pattern = extent.pattern
        place = pattern.projection, place_of(self.family, pattern)
        here = Spread.SYSTEMATIC if pattern in self.told else extent.spread
        return self._standing.get(place, here)

    def _tell(self, extent: Extent) -> None:
        """One finding, whose numbers grow; what was said when more was compared stands."""
        self.told[extent.pattern] = extent
        found = systematic(self.family, extent, self.clock())
        standing = self.journal.recall(self.family, found.projection, [found.slot])
        before = standing.get(found.slot)
        if before is None:
            self.journal.put(found)
            log.warning("%s", found.sentence)
        elif extent.spread is Spread.SYSTEMATIC and not before.accepted:
            self.journal.touch(replace(found, found_at=before.found_at))

    def _sifted(
        self, pieces: Iterable[WaitingPiece], spreads: Mapping[Pattern, Spread]
    ) -> Mapping[Place, SweptRange]:
        handed_over: list[Suspect] = []
        waiting, done = list[WaitingPiece](), dict[Place, SweptRange]()
        for piece in pieces:
            wait = list[Suspect]()
            for suspect in piece.suspects:
                became = fate(spreads[each] for each in patterns_of(self.family, suspect))
                if became is not Fate.LEFT:
                    (wait if became is Fate.WAITS else handed_over).append(suspect)
            if wait:
                waiting.append(replace(piece, suspects=wait))
            elif piece.swept is not None:
                done[piece.place] = piece.swept
        self.sink.publish(handed_over)
        self._waiting = waiting
        return done
