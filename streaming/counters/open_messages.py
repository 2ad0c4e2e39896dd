"""The messages with an open finding: both sides are read to know how far they may count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.counters.open_message import (
    NO_MARGIN,
    Margin,
    OpenMessage,
    Standing,
    margin_of,
    total_margin,
)
from reconcilers.declared.tally import Listed
from reconcilers.declared.truth import TruthTable
from reconcilers.words.errors import Deferred, Soon
from reconcilers.words.model import KeyValue, Kind, Row, Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming.counters.both_sides import BothSides

MOST = 500
"""If its mailboxes have more such messages, a counter waits: each look reads each of them."""


@dataclass(slots=True)
class OpenMessages:
    """The messages with open findings as of the stream's last batch. Used by one thread."""

    sides: BothSides
    _of: Mapping[UUID, Sequence[OpenMessage]] = field(default_factory=dict)

    def take(self, of: Mapping[UUID, Sequence[OpenMessage]]) -> None:
        """Replace the open messages, by mailbox."""
        self._of = of

    def check(self, mailboxes: Collection[UUID]) -> None:
        """Raises `Deferred` if a correction must wait for the open messages of these mailboxes."""
        found = [each for mailbox in mailboxes for each in self._of.get(mailbox, ())]
        if len(found) > MOST:
            told = f"{len(found)} messages there have open findings"
            raise Deferred(Waiting(Wait.MESSAGES_DIFFER, told))
        if any(each.standing is Standing.BEING_REPAIRED for each in found):
            raise Soon("a message there is being repaired")

    def uids(self, mailboxid: UUID) -> frozenset[int]:
        """The UIDs of the open messages of a mailbox."""
        return frozenset(each.uid for each in self._of.get(mailboxid, ()))

    def unreadable(self, mailboxid: UUID) -> frozenset[UUID]:
        """The messages of a mailbox whose truth the server fails to read."""
        found = (each for each in self._of.get(mailboxid, ()) if each.kind is Kind.UNREADABLE)
        return frozenset(source for each in found for source in each.sources)

    def margin(self, mailboxes: Collection[UUID]) -> Margin:
        """By how much these mailboxes may differ from their listing; `Deferred` above `MOST`."""
        found = [(one, self._of[one]) for one in mailboxes if self._of.get(one)]
        if not found:
            return NO_MARGIN
        if sum(len(some) for _, some in found) > MOST:
            self.check(mailboxes)
        return total_margin([self._of_mailbox(mailboxid, some) for mailboxid, some in found])

    def _of_mailbox(self, mailboxid: UUID, some: Sequence[OpenMessage]) -> Margin:
        listed = {
            each.uid: list(self.sides.lists.listed(mailboxid, each.uid, each.uid)) for each in some
        }
        readable = [each for each in some if each.kind is not Kind.UNREADABLE]
        true = self._true(mailboxid, readable, listed)
        return total_margin([margin_of(each, listed[each.uid], true[each.uid]) for each in some])

    def _true(
        self, mailboxid: UUID, some: Iterable[OpenMessage], listed: Mapping[int, Sequence[Listed]]
    ) -> Mapping[int, Sequence[Listed | None]]:
        """By UID the truth rows that claim it, of all messages that were ever seen there."""
        ids: set[KeyValue] = set()
        for each in some:
            ids.update(each.sources)
            ids.update(one.messageid for one in listed[each.uid])
        slots = [Slot(mailboxid, each.uid) for each in some]
        for entries in self.sides.lineage.of_slots(slots).values():
            ids.update(entry.source for entry in entries)
        mailbox, uid = self.sides.family.truth.slot
        true: dict[int, list[Listed | None]] = defaultdict(list)
        for rows in self.sides.truth.truth_rows(sorted(ids, key=str)).values():
            for row in rows:
                at = row.get(uid)
                if row.get(mailbox) == mailboxid and isinstance(at, int):
                    true[at].append(listed_as(self.sides.family.truth, row))
        return true


def listed_as(truth: TruthTable, row: Row) -> Listed | None:
    """How a truth row counts; None unless it has a UID, a message id and a size."""
    source, uid, size = (
        row.get(truth.source.name),
        row.get(truth.slot[1]),
        row.get("fullcontentoctets"),
    )
    if not isinstance(source, UUID) or type(uid) is not int or type(size) is not int:
        return None
    return Listed(uid, source, row.get("flagseen") is True, size)
