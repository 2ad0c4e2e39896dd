"""Which of many mailboxes have counters that may be wrong: the first step of counting.

It reads many mailboxes at a time, in the counting thread or (`streaming.pipeline.screen_task`) in
Spark's workers. It proves nothing: a counter that agrees is let go, any other is looked at closely
by `streaming.counters.schedule`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from checkpoints.tallies import ChunkSums, Tallies
from reconcilers.declared.tally import (
    NOTHING,
    Listed,
    QuotaRoot,
    Sums,
    Tally,
    UidRange,
    by_chunk,
    summed,
    total,
)
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.model import Micros

LARGE = 5_000
"""Messages of a range: where there are more, the mailbox is left to the counting thread."""
ALL_UIDS: UidRange = 0, 2**63 - 1
NOT_COUNTED = ChunkSums({}, whole=False)


class ScreenedTables(Protocol):
    """Reads of many partitions at a time; `streaming.tables.CounterTables` implements it."""

    def stored_of(self, tally: Tally, keys: Sequence[UUID | str]) -> dict[UUID | str, Sums]:
        """The sums of counter rows; those without a row are left out."""

    def owners_of(self, mailboxids: Sequence[UUID]) -> dict[UUID, QuotaRoot]:
        """The quota roots of mailboxes; those that do not exist are left out."""

    def mailboxes_of(
        self, roots: Sequence[QuotaRoot]
    ) -> Iterator[tuple[QuotaRoot, frozenset[UUID]]]:
        """The mailboxes that each user's paths name."""

    def listed_in(
        self, mailboxids: Sequence[UUID], uids: UidRange, most: int
    ) -> dict[UUID, list[Listed] | None]:
        """The messages of mailboxes in a range of UIDs, ordered by UID; None for over ``most``."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A counter row: the mailboxes that it sums up, and those of them that are screened."""

    key: UUID | str
    sums_up: Collection[UUID]
    screened: Collection[UUID]


@dataclass(slots=True)
class Screened:
    """The mailboxes whose counters may be wrong, and how many counters of each tally agree."""

    suspected: set[UUID] = field(default_factory=set)
    agree: Counter[str] = field(default_factory=Counter)

    def update(self, other: Screened) -> None:
        """Add those of other mailboxes."""
        self.suspected |= other.suspected
        self.agree.update(other.agree)


ScreenMailboxes = Callable[[Sequence[UUID]], Screened]
"""Screens mailboxes, each named once. Raises `Retryable`."""


@dataclass(frozen=True, slots=True)
class Screening:
    """Screens the counters of ``tallies``. A chunk has ``width`` UIDs.

    Two clocks differ by less than ``slack`` (µs). A count of a whole mailbox from before ``since``
    (µs) is not used: until then chunks had another width.
    """

    tables: ScreenedTables
    kept: Tallies
    tallies: Sequence[Tally]
    clock: Callable[[], Micros]
    width: int
    slack: Micros
    since: Micros

    def of(self, mailboxids: Sequence[UUID]) -> Screened:
        """Screen these mailboxes, each once. Raises `Retryable`.

        If one may not be read, all are suspected: the counting thread finds out which it is.
        """
        try:
            return self._of(mailboxids)
        except (Refused, ReadFailed):
            return Screened(set(mailboxids))

    def _of(self, mailboxids: Sequence[UUID]) -> Screened:
        of_mailboxes = [_Row(each, (each,), (each,)) for each in mailboxids]
        of_users = self._of_users(mailboxids)
        sums = self._sums({*mailboxids}.union(*(each.sums_up for each in of_users)))
        found = Screened()
        for tally in self.tallies:
            rows = of_users if tally.per_quota_root else of_mailboxes
            stored = self.tables.stored_of(tally, [each.key for each in rows])
            for row in rows:
                if _agrees(tally, stored.get(row.key), row, sums):
                    found.agree[tally.name] += 1
                else:
                    found.suspected.update(row.screened)
        return found

    def _of_users(self, mailboxids: Sequence[UUID]) -> list[_Row]:
        if not any(each.per_quota_root for each in self.tallies):
            return []
        screened = defaultdict[QuotaRoot, list[UUID]](list)
        for mailboxid, root in self.tables.owners_of(mailboxids).items():
            screened[root].append(mailboxid)
        named = self.tables.mailboxes_of(list(screened))
        return [_Row(str(root), theirs, screened[root]) for root, theirs in named]

    def _sums(self, mailboxids: Collection[UUID]) -> dict[UUID, Sums]:
        """The sums of these mailboxes' listings; only chunks that changed are read.

        Large mailboxes that were never counted are left out.
        """
        began, books = self.clock(), self.kept.of_mailboxes(mailboxids)
        chunks = {each: _known(books.get(each, NOT_COUNTED)) for each in mailboxids}
        ranges = defaultdict[UidRange, list[UUID]](list)
        for each in mailboxids:
            for uids in self._to_read(books.get(each)):
                ranges[uids].append(each)
        counted, whole = defaultdict[UUID, dict[int, Sums]](dict), dict[UUID, dict[int, Sums]]()
        for uids, some in ranges.items():
            for mailboxid, rows in self.tables.listed_in(some, uids, LARGE).items():
                if rows is None:
                    chunks.pop(mailboxid, None)
                elif uids == ALL_UIDS:
                    chunks[mailboxid] = whole[mailboxid] = by_chunk(rows, self.width)
                else:
                    counted[mailboxid][uids[0] // self.width] = summed(rows)
        self.kept.counted(counted, began)
        self.kept.counted_whole(whole, began)
        return {
            each: total([*(known | counted.get(each, {})).values()])
            for each, known in chunks.items()
        }

    def _to_read(self, book: ChunkSums | None) -> Iterator[UidRange]:
        if book is None or book.whole_at is None or book.whole_at < self.since:
            yield ALL_UIDS
            return
        for number, chunk in book.chunks.items():
            if chunk.stale(self.slack):
                yield number * self.width, (number + 1) * self.width - 1


def _known(book: ChunkSums) -> dict[int, Sums]:
    return {number: each.sums for number, each in book.chunks.items() if each.sums is not None}


def _agrees(tally: Tally, stored: Sums | None, row: _Row, sums: Mapping[UUID, Sums]) -> bool:
    """Whether it is as the listing has it; not if a mailbox is uncounted or of another user."""
    if not all(each in sums for each in row.sums_up) or not {*row.screened} <= {*row.sums_up}:
        return False
    right = total([sums[each] for each in row.sums_up])
    return all((stored or NOTHING)[each] == right[each] for each in tally.cells)
