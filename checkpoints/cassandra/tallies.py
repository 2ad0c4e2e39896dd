"""Tallies and rounds in Cassandra."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from uuid import UUID

from cassandra import ConsistencyLevel

from checkpoints.cassandra.store import Store
from checkpoints.clock import HOUR
from checkpoints.tallies import MARKS_KEPT_DAYS, Chunk, ChunkSums
from reconcilers.declared.tally import NOTHING, Sum, Sums
from reconcilers.words.model import Micros

BUCKETS = 16
ALL_OF_IT = -1
"""The chunk number of a count of the whole mailbox."""
NO_MAILBOX = UUID(int=0)
"""The key of a row that stores the marked width, and since when. Its own width is 0."""
CHUNKS_A_BATCH = 10
"""With more partitions in a batch, Cassandra warns."""
KEPT = int(timedelta(days=MARKS_KEPT_DAYS).total_seconds())


class CassandraTallies:
    """`checkpoints.tallies.Tallies`; another ``width`` (UIDs in a chunk) restarts all counts."""

    def __init__(self, store: Store, width: int) -> None:
        self._store = store
        self._width = width
        self._mark = store.prepare(
            "UPDATE $ks.tallies USING TIMESTAMP ? SET marked_at = ?"
            " WHERE mailboxid = ? AND width = ? AND chunk = ?"
        )
        self._note = store.prepare(
            "INSERT INTO $ks.tally_marks (hour, bucket, mailboxid) VALUES (?, ?, ?) USING TTL ?"
        )
        self._noted = store.prepare(
            "SELECT mailboxid FROM $ks.tally_marks WHERE hour = ? AND bucket = ?"
        )
        self._read = store.prepare(
            "SELECT mailboxid, chunk, marked_at, counted_at, messages, unseen, size"
            " FROM $ks.tallies WHERE mailboxid IN ? AND width = ?"
        )
        self._counted = store.prepare(
            "UPDATE $ks.tallies USING TIMESTAMP ? SET counted_at = ?, messages = ?, unseen = ?,"
            " size = ? WHERE mailboxid = ? AND width = ? AND chunk = ?"
        )

    def marked_in_this_width_since(self, now: Micros) -> Micros:
        """Since when (µs) marks have this width, from a row that is no mailbox's."""
        doing = "reading the width of tallies"
        for _, chunk, _, since, width, *_ in self._store.rows(doing, self._read, [NO_MAILBOX], 0):
            if chunk == ALL_OF_IT and width == self._width and since is not None:
                return int(since)
        values = (now, now, self._width, 0, 0, NO_MAILBOX, 0, ALL_OF_IT)
        self._store.run("recording the width of tallies", [(self._counted, values)])
        return now

    def mark(self, touched: Mapping[UUID, Collection[int]], at: Micros) -> None:
        """Mark the chunks first, so that every noted mailbox has its marks."""
        marks = (
            [(self._mark, (at, at, mailboxid, self._width, chunk))]
            for mailboxid, chunks in touched.items()
            for chunk in chunks
        )
        notes = (
            [(self._note, (at // HOUR, mailboxid.int % BUCKETS, mailboxid, KEPT))]
            for mailboxid in touched
        )
        for requests in (marks, notes):
            self._store.run("marking tallies", self._store.by_replica(requests, CHUNKS_A_BATCH))

    def marked_in(self, hour: int) -> Iterator[UUID]:
        """The mailboxes marked in an hour, page by page."""
        for bucket in range(BUCKETS):
            for (mailboxid,) in self._store.rows("reading marks", self._noted, hour, bucket):
                yield mailboxid

    def of_mailbox(self, mailboxid: UUID) -> ChunkSums:
        """The stored chunks of a mailbox, from one partition."""
        return self.of_mailboxes([mailboxid]).get(mailboxid) or ChunkSums({}, whole=False)

    def of_mailboxes(self, mailboxids: Collection[UUID]) -> dict[UUID, ChunkSums]:
        """The stored chunks of mailboxes, from many partitions at a time."""
        found: dict[UUID, dict[int, Chunk]] = defaultdict(dict)
        reads = self._store.partitions(self._read, mailboxids, after=(self._width,))
        for mailboxid, chunk, marked, counted, messages, unseen, size in self._store.gather(
            "reading tallies", reads
        ):
            sums = {Sum.COUNT: messages, Sum.UNSEEN: unseen, Sum.SIZE: size}
            found[mailboxid][chunk] = Chunk(None if counted is None else sums, counted, marked)
        return {each: _book(chunks) for each, chunks in found.items()}

    def counted(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        """Write counts with the write time ``began`` (µs), so they never replace newer ones."""
        counts = (
            [(self._counted, (began, began, *_values(each), mailboxid, self._width, chunk))]
            for mailboxid, chunks in sums.items()
            for chunk, each in chunks.items()
        )
        self._store.run("recording tallies", self._store.by_replica(counts, CHUNKS_A_BATCH))

    def counted_whole(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        """Write all chunks first, so that a mailbox marked as whole has them."""
        books = self.of_mailboxes(sums)
        empty = {each: dict.fromkeys(book.chunks, NOTHING) for each, book in books.items()}
        self.counted({each: {**empty.get(each, {}), **its} for each, its in sums.items()}, began)
        self.counted({each: {ALL_OF_IT: NOTHING} for each in sums}, began)


def _book(chunks: dict[int, Chunk]) -> ChunkSums:
    whole = chunks.pop(ALL_OF_IT, None)
    return ChunkSums(chunks, whole is not None, None if whole is None else whole.counted_at)


def _values(sums: Sums) -> tuple[int, int, int]:
    return sums[Sum.COUNT], sums[Sum.UNSEEN], sums[Sum.SIZE]


class CassandraRounds:
    """`checkpoints.tallies.Rounds`: a row for each counter row that was ever corrected.

    It is serial over all data centres, whichever is watched: nothing else keeps two streams apart.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read = store.prepare_serial(
            "SELECT round FROM $ks.tally_rounds WHERE tally = ? AND key = ?"
        )
        self._first = store.prepare_conditional(
            "INSERT INTO $ks.tally_rounds (tally, key, round) VALUES (?, ?, 1) IF NOT EXISTS"
        )
        self._next = store.prepare_conditional(
            "UPDATE $ks.tally_rounds SET round = ? WHERE tally = ? AND key = ? IF round = ?"
        )
        self._read.consistency_level = ConsistencyLevel.SERIAL
        for claim in (self._first, self._next):
            claim.serial_consistency_level = ConsistencyLevel.SERIAL

    def current(self, tally: str, key: str) -> int:
        """The number of claimed rounds, by a serial read: it sees the outcome of pending claims."""
        rows = self._store.rows("reading a tally's round", self._read, tally, key)
        return next((int(round_) for (round_,) in rows), 0)

    def claim(self, tally: str, key: str, after: int) -> bool:
        """Claim by one lightweight transaction, which the driver never repeats."""
        doing = "claiming a tally's round"
        if after == 0:
            rows = self._store.rows(doing, self._first, tally, key)
        else:
            rows = self._store.rows(doing, self._next, after + 1, tally, key, after)
        return any(bool(row[0]) for row in rows)
