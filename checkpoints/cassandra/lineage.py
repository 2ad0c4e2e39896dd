"""Lineage in Cassandra: two tables for what was seen, three for the deletes.

`of_slots` runs for every examined key, and reads a mailbox's rows from one partition; `of_messages`
only where an event named no UID. Writes are grouped; many are in flight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from uuid import UUID

from cassandra.query import PreparedStatement

from checkpoints.cassandra.store import Request, Store, in_groups
from checkpoints.lineage import KEPT_AFTER_LOSS
from reconcilers.memory import Deletes, Entry, ProjectionDelete, TruthDelete
from reconcilers.model import Micros, Slot

IDS_A_READ = 100
ROWS_A_BATCH = 30
"""Of one partition: some 2 KiB, below the size at which Cassandra warns of a batch."""
ROWS_AS_ONE = 200
"""Of one message in one mailbox: some 20 KiB, well below the size that Cassandra refuses."""
PARTITIONS_A_BATCH = 10
"""More than that in a batch makes Cassandra warn."""
DELETES_KEPT = timedelta(days=90)


class CassandraLineage:
    """`checkpoints.lineage.Lineage`. Entries are written by message first, then by row.

    So what is found by row is found by message too, also after a crash in between: a look, which
    asks by row, writes the entry again. Let go of they are the other way round. Those of a
    message in a mailbox are written as one: part of them would look complete. ``recorded_at``
    is written as given: callers pass an entry that is absent, that has none yet, or that is
    expiring, as they read it. ``in_truth`` is only ever set.
    """

    def __init__(self, store: Store, deletes_kept: timedelta = DELETES_KEPT) -> None:
        self._store = store
        self._deletes_kept = int(deletes_kept.total_seconds())
        self._prepare_reads(store)
        self._prepare_deletes(store)
        self._message = _writes(store, "lineage_by_message")
        self._row = _writes(store, "lineage_by_row")

    def _prepare_reads(self, store: Store) -> None:
        self._by_message = store.prepare(
            "SELECT messageid, mailboxid, uid, in_truth, recorded_at, TTL(seen)"
            " FROM $ks.lineage_by_message WHERE messageid IN ?"
        )
        self._by_slot = store.prepare(
            "SELECT messageid, mailboxid, uid, in_truth, recorded_at, TTL(seen)"
            " FROM $ks.lineage_by_row WHERE mailboxid = ? AND uid IN ?"
        )
        self._by_mailbox = store.prepare(
            "SELECT uid, messageid FROM $ks.lineage_by_row WHERE mailboxid = ?"
        )
        self._truth_deletes = store.prepare(
            "SELECT uid, deleted_at FROM $ks.truth_deletes WHERE messageid = ? AND mailboxid = ?"
        )
        self._projection_deletes = store.prepare(
            "SELECT deleted_at FROM $ks.projection_deletes WHERE mailboxid = ? AND uid = ?"
        )
        self._mailbox_deletes = store.prepare(
            "SELECT deleted_at FROM $ks.mailbox_deletes"
            " WHERE mailboxid = ? AND deleted_at >= ? AND deleted_at <= ? LIMIT 1"
        )
        self._watched_since = store.prepare("SELECT since FROM $ks.watches WHERE name = 'stream'")

    def _prepare_deletes(self, store: Store) -> None:
        self._truth_delete = store.prepare(
            "INSERT INTO $ks.truth_deletes (messageid, mailboxid, uid, deleted_at)"
            " VALUES (?, ?, ?, ?) USING TTL ?"
        )
        self._projection_delete = store.prepare(
            "INSERT INTO $ks.projection_deletes (mailboxid, uid, deleted_at)"
            " VALUES (?, ?, ?) USING TTL ?"
        )
        self._mailbox_delete = store.prepare(
            "INSERT INTO $ks.mailbox_deletes (mailboxid, deleted_at) VALUES (?, ?) USING TTL ?"
        )
        self._watch_from = store.prepare(
            "INSERT INTO $ks.watches (name, since) VALUES ('stream', ?)"
        )

    # --- entries --------------------------------------------------------------------------------

    def of_messages(self, messageids: Sequence[UUID]) -> dict[UUID, list[Entry]]:
        """Entries of each message, all mailboxes."""
        requests = (
            (self._by_message, (list(group),))
            for group in in_groups(list(dict.fromkeys(messageids)), IDS_A_READ)
        )
        found: dict[UUID, list[Entry]] = defaultdict(list)
        for entry in self._entries("reading lineage", requests):
            found[entry.messageid].append(entry)
        return dict(found)

    def of_slots(self, slots: Sequence[Slot]) -> dict[Slot, list[Entry]]:
        """The messages ever seen at each slot."""
        by_mailbox: dict[UUID, list[int]] = defaultdict(list)
        for slot in dict.fromkeys(slots):
            by_mailbox[slot.mailboxid].append(slot.uid)
        requests = (
            (self._by_slot, (mailboxid, list(group)))
            for mailboxid, uids in by_mailbox.items()
            for group in in_groups(uids, IDS_A_READ)
        )
        found: dict[Slot, list[Entry]] = defaultdict(list)
        for entry in self._entries("reading lineage by row", requests):
            found[Slot(entry.mailboxid, entry.uid)].append(entry)
        return dict(found)

    def _entries(self, doing: str, requests: Iterable[Request]) -> Iterator[Entry]:
        for messageid, mailboxid, uid, in_truth, recorded_at, expires in self._store.gather(
            doing, requests
        ):
            yield Entry(messageid, mailboxid, uid, bool(in_truth), recorded_at, expires is not None)

    def of_mailbox(self, mailboxid: UUID) -> Iterator[tuple[Slot, UUID]]:
        """Every slot of a mailbox with a message seen there, page by page."""
        rows = self._store.rows("reading a mailbox's lineage", self._by_mailbox, mailboxid)
        for uid, messageid in rows:
            yield Slot(mailboxid, uid), messageid

    def remember(self, entries: Iterable[Entry]) -> None:
        """Write entries for good, both ways round."""
        self._write("remembering lineage", list(entries), kept=0)

    def expire(self, entries: Iterable[Entry]) -> None:
        """Write entries again, to be forgotten after `KEPT_AFTER_LOSS`."""
        kept = int(KEPT_AFTER_LOSS.total_seconds())
        self._write("letting lineage expire", list(entries), kept)

    def _write(self, doing: str, entries: Sequence[Entry], kept: int) -> None:
        by_message: dict[tuple[UUID, UUID], list[Request]] = defaultdict(list)
        for entry in entries:
            place = entry.messageid, entry.mailboxid
            by_message[place].append(_request(self._message, entry, kept))
        as_one = (
            group for writes in by_message.values() for group in in_groups(writes, ROWS_AS_ONE)
        )
        by_row = ((entry.mailboxid, _request(self._row, entry, kept)) for entry in entries)
        halves = [
            self._store.by_replica(as_one, PARTITIONS_A_BATCH),
            self._by_partition(by_row),
        ]
        for requests in reversed(halves) if kept else halves:
            self._store.run(doing, requests)

    def _by_partition(self, requests: Iterable[tuple[UUID, Request]]) -> Iterator[Request]:
        partitions: dict[UUID, list[Request]] = defaultdict(list)
        for partition, request in requests:
            partitions[partition].append(request)
        for together in partitions.values():
            for group in in_groups(together, ROWS_A_BATCH):
                yield self._store.batch(group)

    # --- deletes --------------------------------------------------------------------------------

    def remember_deletes(self, deletes: Iterable[TruthDelete | ProjectionDelete]) -> None:
        """Many deletes were seen: sent together, durable when this returns."""
        single = (
            [request] for each in dict.fromkeys(deletes) for request in self._delete_requests(each)
        )
        self._store.run("remembering deletes", self._store.by_replica(single, PARTITIONS_A_BATCH))

    def _delete_requests(self, delete: TruthDelete | ProjectionDelete) -> Iterator[Request]:
        kept = self._deletes_kept
        match delete:
            case TruthDelete(messageid, mailboxid, uid, at):
                yield self._truth_delete, (messageid, mailboxid, uid, at, kept)
                yield self._mailbox_delete, (mailboxid, at, kept)
            case ProjectionDelete(slot, at):
                yield self._projection_delete, (slot.mailboxid, slot.uid, at, kept)

    def truth_deletes(self, messageid: UUID, mailboxid: UUID) -> Deletes:
        """The truth deletes seen for this message in this mailbox."""
        times: dict[int, set[Micros]] = defaultdict(set)
        rows = self._store.rows("reading truth deletes", self._truth_deletes, messageid, mailboxid)
        for uid, deleted_at in rows:
            times[uid].add(deleted_at)
        return Deletes({uid: frozenset(at) for uid, at in times.items()})

    def projection_deletes(self, slot: Slot) -> frozenset[Micros]:
        """The deletes seen for this projection row."""
        key = (slot.mailboxid, slot.uid)
        rows = self._store.rows("reading projection deletes", self._projection_deletes, *key)
        return frozenset(deleted_at for (deleted_at,) in rows)

    def truth_deletes_in_mailbox(self, mailboxid: UUID, since: Micros, until: Micros) -> bool:
        """Whether any truth delete of this mailbox was written between two times, ends included."""
        key = (mailboxid, since, until)
        return any(
            True for _row in self._store.rows("reading truth deletes", self._mailbox_deletes, *key)
        )

    # --- watching -------------------------------------------------------------------------------

    def watched_since(self) -> Micros | None:
        """Since when every change reached the stream (µs)."""
        rows = self._store.rows("reading since when changes are watched", self._watched_since)
        return next((since for (since,) in rows), None)

    def watch_from(self, at: Micros) -> None:
        """Watching begins, anew after a loss."""
        self._store.run("recording since when changes are watched", [(self._watch_from, (at,))])


Writes = dict[tuple[bool, bool], PreparedStatement]
"""By whether the entry is in the truth, and whether it was recorded."""


def _writes(store: Store, table: str) -> Writes:
    where = "WHERE messageid = ? AND mailboxid = ? AND uid = ?"
    in_truth, recorded = ("", ", in_truth = true"), ("", ", recorded_at = ?")
    return {
        (a, b): store.prepare(
            f"UPDATE $ks.{table} USING TTL ? SET seen = true{in_truth[a]}{recorded[b]} {where}"
        )
        for a in (False, True)
        for b in (False, True)
    }


def _request(writes: Writes, entry: Entry, kept: int) -> Request:
    recorded = () if entry.recorded_at is None else (entry.recorded_at,)
    key = (entry.messageid, entry.mailboxid, entry.uid)
    return writes[entry.in_truth, bool(recorded)], (kept, *recorded, *key)
