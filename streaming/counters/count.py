"""Counts mailboxes: by chunks, which is cheap and raises suspicion; whole, against the truth.

A whole mailbox is read by pages or ranges of UIDs, so its messages are never all in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from checkpoints.tallies import Tallies
from reconcilers.declared.tally import Listed, Sum, Sums, by_chunk, summed, together, total
from reconcilers.rows.compare import is_countable
from reconcilers.words.errors import Deferred, Soon, Unfinished
from reconcilers.words.model import KeyValue, Micros, Row
from reconcilers.words.waiting import Wait, Waiting
from streaming.counters.both_sides import BothSides
from streaming.counters.open_messages import OpenMessages, listed_as
from streaming.counters.ports import WholeCounts

IDS_A_READ = 500
ROWS_A_RANGE = 5_000
"""Rows of the listing, and of lineage, that a range of UIDs has at most."""
VERY_LARGE = 100_000
"""Messages: for a larger mailbox the last count before a correction reads marked chunks only."""
LAST_UID = 2**63 - 1
READ_AGAIN = 20
"""How many differing messages are read again, because users write meanwhile."""


@dataclass(frozen=True, slots=True)
class CountedRange:
    """The sums of a range of UIDs by chunk; the next range begins at ``after``, None at the end."""

    chunks: Mapping[int, Sums]
    after: int | None = None


@dataclass(frozen=True, slots=True)
class BegunCount:
    """An unfinished first count: the ``chunks`` below UID ``first``, since ``began`` (µs)."""

    began: Micros
    first: int = 0
    chunks: Mapping[int, Sums] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MailboxCounter:
    """Counts the mailboxes of one keyspace.

    A chunk has ``width`` UIDs. Two clocks differ by less than half of D. Messages with an ``open``
    finding count as they are listed; the caller adds their margin.
    """

    sides: BothSides
    tallies: Tallies
    watched: WholeCounts
    clock: Callable[[], Micros]
    width: int
    open: OpenMessages
    _begun: dict[UUID, BegunCount] = field(default_factory=dict)

    def sums(self, mailboxids: Collection[UUID]) -> Sums:
        """The sums of these mailboxes' listings; only chunks that changed are read.

        Raises `Unfinished` while a large mailbox is counted for the first time.
        """
        return total([self._mailbox(each) for each in mailboxids])

    def anew(self, mailboxids: Collection[UUID]) -> Sums:
        """The sums of these mailboxes' listings now, with changes that are not released yet.

        Marked chunks only are read of a mailbox with more than `VERY_LARGE` messages.
        """
        return total([self._anew(each) for each in mailboxids])

    def _anew(self, mailboxid: UUID) -> Sums:
        book = self.watched.of_mailbox(mailboxid)
        known = sum(each.sums[Sum.COUNT] for each in book.chunks.values() if each.sums)
        large = book.whole and known > VERY_LARGE
        return self._mailbox(mailboxid) if large else self._whole(mailboxid)

    def _whole(self, mailboxid: UUID) -> Sums:
        began = self.clock()
        chunks = by_chunk(self.sides.lists.listed(mailboxid), self.width)
        self.watched.counted_whole({mailboxid: chunks}, began)
        return total(list(chunks.values()))

    def _first_time(self, mailboxid: UUID) -> Sums:
        """Count one range. Returns all sums after the last one, raises `Unfinished` before."""
        begun = self._begun.get(mailboxid) or BegunCount(self.clock())
        rows = list(islice(self.sides.lists.listed(mailboxid, begun.first), ROWS_A_RANGE))
        chunks = together(begun.chunks, by_chunk(rows, self.width))
        if len(rows) == ROWS_A_RANGE:
            self._begun[mailboxid] = BegunCount(begun.began, rows[-1].uid + 1, chunks)
            raise Unfinished(f"mailbox {mailboxid} was counted up to UID {rows[-1].uid}")
        self.watched.counted_whole({mailboxid: chunks}, begun.began)
        self._begun.pop(mailboxid, None)
        return total(list(chunks.values()))

    def _mailbox(self, mailboxid: UUID) -> Sums:
        began, book = self.clock(), self.watched.of_mailbox(mailboxid)
        if not book.whole:
            return self._first_time(mailboxid)
        counted = {
            number: summed(self._chunk(mailboxid, number))
            for number, chunk in book.chunks.items()
            if chunk.stale(self.sides.delay // 2)
        }
        if counted:
            self.tallies.counted({mailboxid: counted}, began)
        known = {number: chunk.sums for number, chunk in book.chunks.items()} | counted
        return total([each for each in known.values() if each is not None])

    def _chunk(self, mailboxid: UUID, number: int) -> Iterator[Listed]:
        first = number * self.width
        return self.sides.lists.listed(mailboxid, first, first + self.width - 1)

    def range_against_truth(self, mailboxid: UUID, first: int) -> CountedRange:
        """Count a range of a mailbox from a UID on, comparing messages without open finding.

        Raises `Deferred` if one differs from the truth: it must be repaired first.
        """
        rows = list(islice(self.sides.lists.listed(mailboxid, first), ROWS_A_RANGE))
        known = list(islice(self.sides.known_from(mailboxid, first), ROWS_A_RANGE))
        last = min(_end([each.uid for each in rows], first), _end([uid for uid, _ in known], first))
        listed = {each.uid: each for each in rows if each.uid <= last}
        ids: set[KeyValue] = {each.messageid for each in listed.values()}
        ids.update(messageid for uid, messageid in known if uid <= last)
        true = self._true(mailboxid, list(ids - self.open.unreadable(mailboxid)))
        others = {
            uid: self.sides.listed_at(mailboxid, uid) for uid in true if not first <= uid <= last
        }
        apart = self.open.uids(mailboxid)
        there = others | {uid: each for uid, each in listed.items() if uid not in apart}
        wrong = {uid for uid in true.keys() | there if true.get(uid) != there.get(uid)}
        if wrong:
            self._still_differ(mailboxid, wrong, true)
            raise Soon(f"mailbox {mailboxid} changes while it is counted")
        after = None if last == LAST_UID else last + 1
        return CountedRange(by_chunk(listed.values(), self.width), after)

    def _still_differ(
        self, mailboxid: UUID, uids: Collection[int], claimed: Mapping[int, Listed]
    ) -> None:
        """Raises `Deferred` if one of these still differs when it is read again."""
        for uid in sorted(uids)[:READ_AGAIN]:
            listed = self.sides.listed_at(mailboxid, uid)
            named = {each.messageid for each in (listed, claimed.get(uid)) if each is not None}
            true = self._true(mailboxid, [*named, *self.sides.known_at(mailboxid, uid) - named])
            if true.get(uid) != listed:
                wrong = f"{len(uids)} messages of mailbox {mailboxid} differ from the truth"
                raise Deferred(Waiting(Wait.MESSAGES_DIFFER, f"{wrong}, UID {uid} among them"))

    def _true(self, mailboxid: UUID, messageids: list[KeyValue]) -> dict[int, Listed]:
        mailbox, uid = self.sides.family.truth.slot
        apart = self.open.uids(mailboxid)
        true: dict[int, Listed] = {}
        for start in range(0, len(messageids), IDS_A_READ):
            found = self.sides.truth.truth_rows(messageids[start : start + IDS_A_READ])
            rows = (row for truths in found.values() for row in truths)
            for row in rows:
                if row.get(mailbox) != mailboxid or row.get(uid) in apart:
                    continue
                message = self._message(row, mailboxid)
                if message.uid in true:
                    where = f"UID {message.uid} of mailbox {mailboxid}"
                    raise Deferred(Waiting(Wait.MESSAGES_DIFFER, f"two truth rows claim {where}"))
                true[message.uid] = message
        return true

    def _message(self, row: Row, mailboxid: UUID) -> Listed:
        found = (
            listed_as(self.sides.family.truth, row)
            if is_countable(self.sides.family, row)
            else None
        )
        if found is None:
            uid = row.get(self.sides.family.truth.slot[1])
            told = f"the truth row of UID {uid} of mailbox {mailboxid} is incomplete"
            raise Deferred(Waiting(Wait.MESSAGES_DIFFER, told))
        return found


def _end(uids: Sequence[int], first: int) -> int:
    """Up to which UID a read from ``first`` on is complete; the last UID may have more rows."""
    return LAST_UID if len(uids) < ROWS_A_RANGE else max(uids[-1] - 1, first)
