"""The pieces of a sweep: some adjacent ranges of a table, of which a worker reads what it can.

The size of a table need not be known: a piece ends after so many rows, at the end of a range. It
ends after `MOST_SUSPECTS`, too: all of them are sent to the driver.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from reconcilers.declared.raw import RawCell, RawRow
from reconcilers.words.errors import Refused, Retryable
from reconcilers.words.model import Kind, Micros, Suspect
from reconcilers.words.tokens import TokenRange, range_of, tokens_of
from streaming.again.past import LeftRows, SiftedRows

MOST_SUSPECTS = 10_000
"""Suspects of a piece, beyond which it ends with the range that it is in."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Adjacent ranges of one table, with these ``numbers``, of so many ``ranges``.

    It ends at the end of a range once ``most`` rows were read. ``ahead``: only fingerprints are
    made. ``at`` is when the driver sent it (µs, by its clock): rows that are left are recorded as
    seen then.
    """

    table: str
    numbers: range
    ranges: int
    most: int
    ahead: bool = False
    at: Micros = 0

    @property
    def tokens(self) -> TokenRange:
        """The tokens of all its ranges."""
        return tokens_of(self.numbers, self.ranges)


@dataclass(slots=True)
class SweptPiece:
    """What a worker found in a piece.

    Its ``piece`` has only the ranges that were read. ``unread`` are tokens that the server fails to
    read, and why. ``failed`` is why the whole piece does not count: a server did not answer, or it
    refused. ``left`` are undecided rows of the past, by reason. ``covered`` counts suspects whose
    reason a person has accepted, ``told`` rows whose own finding already states the reason.
    """

    piece: Piece
    rows: int = 0
    suspects: list[Suspect] = field(default_factory=list)
    left: dict[Kind, LeftRows] = field(default_factory=dict)
    covered: Counter[Kind] = field(default_factory=Counter)
    told: int = 0
    unread: list[tuple[TokenRange, str]] = field(default_factory=list)
    failed: Retryable | Refused | None = None

    def take(self, sifted: SiftedRows) -> None:
        """Add some sifted rows."""
        self.suspects += sifted.handed_over
        self.covered += sifted.covered
        self.told += sifted.told
        for reason, some in sifted.left.items():
            self.left.setdefault(reason, LeftRows(some.most)).merge(some)

    def end_before(self, number: int) -> None:
        """Leave out the range with this number and those after it."""
        self.piece = replace(self.piece, numbers=range(self.piece.numbers.start, number))

    @property
    def refused(self) -> bool:
        """Whether a table refuses to be read, until a person acts."""
        return isinstance(self.failed, Refused)

    @property
    def differ(self) -> int:
        """How many rows differ."""
        return len(self.suspects) + self.told + sum(each.rows for each in self.left.values())

    @property
    def unreadable(self) -> list[Suspect]:
        """The suspects that could not be looked at."""
        return [each for each in self.suspects if each.unreadable is not None]


@dataclass(slots=True)
class PieceEnd:
    """Ends the reading of a piece. A row's ``partition`` key has its ``token``."""

    found: SweptPiece
    token: Callable[[RawCell], int]
    partition: Callable[[RawRow], RawCell]

    def pages(self, pages: Iterable[Sequence[RawRow]]) -> Iterator[Sequence[RawRow]]:
        """Pages in token order, until the piece has enough; the last one ends with a range."""
        piece, read = self.found.piece, self.found.rows
        for page in pages:
            read += len(page)
            many = len(self.found.suspects) >= MOST_SUSPECTS
            if page and (many or read >= piece.most):
                last = self.range_of(page[-1])
                if self.range_of(page[0]) < last < piece.numbers[-1]:
                    self.found.end_before(last)
                    yield page[: bisect_left(page, last, key=self.range_of)]
                    return
            yield page

    def range_of(self, row: RawRow) -> int:
        """The number of the range that has this row."""
        return range_of(self.token(self.partition(row)), self.found.piece.ranges)
