"""Counting mailboxes: by chunks, which is cheap and raises suspicion; whole, against the truth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from uuid import UUID

from checkpoints.lineage import Lineage
from checkpoints.tallies import Tallies
from reconcilers.compare import is_incomplete
from reconcilers.errors import Deferred, Soon
from reconcilers.family import Family
from reconcilers.model import KeyValue, Micros, Row, Slot
from reconcilers.tally import Listed, Sums, by_chunk, summed, total
from streaming.counters.open_messages import OpenMessages
from streaming.counters.ports import ListTables
from streaming.steps.ports import TruthTables

IDS_A_READ = 500
READ_AGAIN = 20
"""Of the messages that differ, so many are read once more: users write meanwhile."""


@dataclass(frozen=True, slots=True)
class MailboxCounter:
    """Counts the mailboxes of one keyspace.

    ``width`` is how many UIDs a chunk spans; two clocks differ by less than ``slack`` (µs).
    Messages with an ``open`` finding count as they are listed: their margin is added by who asks.
    """

    family: Family
    lists: ListTables
    truth: TruthTables
    lineage: Lineage
    tallies: Tallies
    clock: Callable[[], Micros]
    width: int
    slack: Micros
    open: OpenMessages

    def sums(self, mailboxids: Collection[UUID]) -> Sums:
        """What these mailboxes list, as far as is known: only chunks that changed are read."""
        return total([self._mailbox(each) for each in mailboxids])

    def anew(self, mailboxids: Collection[UUID]) -> Sums:
        """What these mailboxes list now, changes included that have not come out yet."""
        return total([self._whole(each) for each in mailboxids])

    def _whole(self, mailboxid: UUID) -> Sums:
        began = self.clock()
        chunks = by_chunk(self.lists.listed(mailboxid), self.width)
        self.tallies.counted_whole(mailboxid, chunks, began)
        return total(list(chunks.values()))

    def _mailbox(self, mailboxid: UUID) -> Sums:
        began, book = self.clock(), self.tallies.of_mailbox(mailboxid)
        if not book.whole:
            return self._whole(mailboxid)
        counted = {
            number: summed(self._chunk(mailboxid, number))
            for number, chunk in book.chunks.items()
            if chunk.stale(self.slack)
        }
        if counted:
            self.tallies.counted(mailboxid, counted, began)
        known = {number: chunk.sums for number, chunk in book.chunks.items()} | counted
        return total([each for each in known.values() if each is not None])

    def _chunk(self, mailboxid: UUID, number: int) -> Iterator[Listed]:
        first = number * self.width
        return self.lists.listed(mailboxid, first, first + self.width - 1)

    def recounted(self, mailboxids: Collection[UUID]) -> Sums:
        """What these mailboxes hold, every message without an open finding held against the truth.

        Raises `Deferred` where a mailbox differs from the truth: that is to be repaired first.
        """
        return total([self._against_truth(each) for each in mailboxids])

    def _against_truth(self, mailboxid: UUID) -> Sums:
        began = self.clock()
        listed = {each.uid: each for each in self.lists.listed(mailboxid)}
        ids: set[KeyValue] = {each.messageid for each in listed.values()}
        ids.update(messageid for _slot, messageid in self.lineage.of_group(mailboxid))
        true = self._true(mailboxid, list(ids - self.open.unreadable(mailboxid)))
        apart = self.open.uids(mailboxid)
        held = {uid: each for uid, each in listed.items() if uid not in apart}
        if true != held:
            wrong = {uid for uid in true.keys() | held if true.get(uid) != held.get(uid)}
            self._still_differ(mailboxid, wrong)
            raise Soon(f"mailbox {mailboxid} changes while it is counted")
        self.tallies.counted_whole(mailboxid, by_chunk(listed.values(), self.width), began)
        return summed(listed.values())

    def _still_differ(self, mailboxid: UUID, uids: Collection[int]) -> None:
        """Raises `Deferred` where one of these differs when it is read once more."""
        for uid in sorted(uids)[:READ_AGAIN]:
            listed = {each.uid: each for each in self.lists.listed(mailboxid, uid, uid)}
            known: set[KeyValue] = {each.messageid for each in listed.values()}
            known.update(messageid for _slot, messageid in self._known_at(mailboxid, uid))
            true = self._true(mailboxid, list(known))
            if true.get(uid) != listed.get(uid):
                wrong = f"{len(uids)} messages of mailbox {mailboxid} differ from the truth"
                raise Deferred(f"{wrong}, UID {uid} among them")

    def _known_at(self, mailboxid: UUID, uid: int) -> list[tuple[Slot, KeyValue]]:
        slot = Slot(mailboxid, uid)
        entries = self.lineage.of_slots([slot]).get(slot, ())
        return [(slot, entry.source) for entry in entries]

    def _true(self, mailboxid: UUID, messageids: list[KeyValue]) -> dict[int, Listed]:
        mailbox, uid = self.family.truth.slot
        apart = self.open.uids(mailboxid)
        true: dict[int, Listed] = {}
        for start in range(0, len(messageids), IDS_A_READ):
            found = self.truth.truth_rows(messageids[start : start + IDS_A_READ])
            rows = (row for truths in found.values() for row in truths)
            for row in rows:
                if row.get(mailbox) != mailboxid or row.get(uid) in apart:
                    continue
                message = self._message(row, mailboxid)
                if message.uid in true:
                    where = f"UID {message.uid} of mailbox {mailboxid}"
                    raise Deferred(f"two truth rows claim {where}")
                true[message.uid] = message
        return true

    def _message(self, row: Row, mailboxid: UUID) -> Listed:
        truth = self.family.truth
        uid, messageid = row.get(truth.slot[1]), row.get(truth.source.name)
        size = row.get("fullcontentoctets")
        assert isinstance(uid, int)
        assert isinstance(messageid, UUID)
        if is_incomplete(self.family, row):
            raise Deferred(f"the truth row of UID {uid} of mailbox {mailboxid} is incomplete")
        return Listed(uid, messageid, row.get("flagseen") is True, size if type(size) is int else 0)
