"""Which of many mailboxes have counters that may be wrong: the first step of counting.

It reads many mailboxes at a time, in the counting thread or (`streaming.pipeline.screen_task`) in
Spark's workers. It proves nothing: a counter that agrees is let go, any other is looked at closely
by `streaming.counters.schedule`.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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
from reconcilers.words.errors import ReadFailed, Refused, Retryable
from reconcilers.words.groups import in_groups
from reconcilers.words.model import Micros

LARGE = 5_000
"""Messages of a range: where there are more, the mailbox is left to the counting thread."""
USUAL, FEWEST = 500, 10
"""Messages of a usual mailbox, and the fewest mailboxes that are screened together."""
PARTS, TRIED = 10, 2
"""Mailboxes that cannot be read together are divided into parts. If so many of these get no answer
either, no server answers."""
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
    """What was found of some mailboxes; those for which there was no time are ``left``.

    ``suspected`` has the tallies (by name) whose counters may be wrong, by mailbox. ``agree`` is
    the number of counters of each tally that agree.
    """

    suspected: defaultdict[UUID, set[str]] = field(default_factory=partial(defaultdict, set))
    agree: Counter[str] = field(default_factory=Counter)
    left: set[UUID] = field(default_factory=set)

    def suspect(self, mailboxids: Iterable[UUID], tallies: Iterable[str]) -> None:
        """Suspect these tallies of these mailboxes."""
        names = set(tallies)
        for each in mailboxids:
            self.suspected[each] |= names

    def update(self, other: Screened) -> None:
        """Add those of other mailboxes."""
        self.suspected.update(other.suspected)
        self.agree.update(other.agree)
        self.left |= other.left


ScreenMailboxes = Callable[[Sequence[UUID]], Screened]
"""Screens mailboxes, each named once, for as long as it may. Raises `Retryable`."""


@dataclass(frozen=True, slots=True)
class Screening:
    """Screens the counters of ``tallies``. A chunk has ``width`` UIDs.

    Two clocks differ by less than ``slack`` (µs). A count of a whole mailbox from before ``since``
    (µs) is not used: until then chunks had another width. At most ``rows`` of the listing, or those
    of one mailbox, are in memory.
    """

    tables: ScreenedTables
    kept: Tallies
    tallies: Sequence[Tally]
    clock: Callable[[], Micros]
    width: int
    slack: Micros
    since: Micros
    rows: int

    def of(self, mailboxids: Sequence[UUID], until: float = float("inf")) -> Screened:
        """Screen these mailboxes, each named once; begin none after ``until`` (monotonic, s).

        Raises `Retryable` if nothing can be read. If some cannot, those are suspected: the counting
        thread then waits for each of them alone.
        """
        found = Screened()
        for some in in_groups(mailboxids, max(FEWEST, self.rows // USUAL)):
            if time.monotonic() > until:
                found.left.update(some)
            else:
                found.update(self._or_parts(some))
        return found

    def _or_parts(self, mailboxids: Sequence[UUID]) -> Screened:
        try:
            return self._of(mailboxids)
        except (Refused, ReadFailed) as failed:
            return self._parts(mailboxids, failed)
        except Retryable as failed:
            if len(mailboxids) == 1:
                raise
            return self._parts(mailboxids, failed)

    def _parts(self, mailboxids: Sequence[UUID], failed: Refused | Retryable) -> Screened:
        """Suspect the parts that fail, too; raise ``failed`` if no server answers."""
        found, answered = Screened(), isinstance(failed, Refused | ReadFailed)
        parts = in_groups(mailboxids, max(1, len(mailboxids) // PARTS))
        for number, part in enumerate(parts, start=1):
            try:
                found.update(self._of(part))
                answered = True
            except (Refused, Retryable):
                found.suspect(part, (each.name for each in self.tallies))
            if number == TRIED and not answered:
                raise failed
        return found

    def _of(self, mailboxids: Sequence[UUID]) -> Screened:
        of_mailboxes = [_Row(each, (each,), (each,)) for each in mailboxids]
        of_users = self._of_users(mailboxids)
        sums = self._sums([*{*mailboxids}.union(*(each.sums_up for each in of_users))])
        found = Screened()
        for tally in self.tallies:
            self._compare(tally, of_users if tally.per_quota_root else of_mailboxes, sums, found)
        return found

    def _compare(
        self, tally: Tally, rows: Sequence[_Row], sums: Mapping[UUID, Sums], found: Screened
    ) -> None:
        try:
            stored = self.tables.stored_of(tally, [each.key for each in rows])
        except (Refused, ReadFailed):  # its table alone
            found.suspect((each for row in rows for each in row.screened), [tally.name])
            return
        for row in rows:
            if _agrees(tally, stored.get(row.key), row, sums):
                found.agree[tally.name] += 1
            else:
                found.suspect(row.screened, [tally.name])

    def _of_users(self, mailboxids: Sequence[UUID]) -> list[_Row]:
        if not any(each.per_quota_root for each in self.tallies):
            return []
        screened = defaultdict[QuotaRoot, list[UUID]](list)
        for mailboxid, root in self.tables.owners_of(mailboxids).items():
            screened[root].append(mailboxid)
        named = self.tables.mailboxes_of(list(screened))
        return [_Row(str(root), theirs, screened[root]) for root, theirs in named]

    def _sums(self, mailboxids: Sequence[UUID]) -> dict[UUID, Sums]:
        """The sums of these mailboxes' listings; only chunks that changed are read.

        Large mailboxes that were never counted are left out.
        """
        began, books = self.clock(), self.kept.of_mailboxes(mailboxids)
        chunks = {each: _known(books.get(each, NOT_COUNTED)) for each in mailboxids}
        ranges = defaultdict[UidRange, list[UUID]](list)
        for each in mailboxids:
            for uids in self._to_read(books.get(each)):
                ranges[uids].append(each)
        for uids, some in ranges.items():
            most = LARGE if uids == ALL_UIDS else min(LARGE, self.width)
            for part in in_groups(some, max(1, self.rows // most)):
                self._count(self.tables.listed_in(part, uids, most), uids, began, chunks)
        return {each: total([*known.values()]) for each, known in chunks.items()}

    def _count(
        self,
        listed: Mapping[UUID, Sequence[Listed] | None],
        uids: UidRange,
        began: Micros,
        chunks: dict[UUID, dict[int, Sums]],
    ) -> None:
        """Store the sums of a range, and put them into ``chunks``."""
        there = {each: rows for each, rows in listed.items() if rows is not None}
        for each in listed.keys() - there.keys():
            chunks.pop(each, None)
        if uids == ALL_UIDS:
            whole = {each: by_chunk(rows, self.width) for each, rows in there.items()}
            self.kept.counted_whole(whole, began)
            chunks.update(whole)
            return
        number = uids[0] // self.width
        counted = {each: {number: summed(rows)} for each, rows in there.items()}
        self.kept.counted(counted, began)
        for each, sums in counted.items():
            if each in chunks:
                chunks[each] |= sums

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
