"""Whole counts that prove lost events: a chunk has changed, and nothing has marked it.

A change marks its chunk. A chunk whose sums differ without a mark has changed without an event: the
event was lost, or is still in flight or delayed. So a chunk is decided only when all changes from
before some time after the count are released, and with them every mark.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from checkpoints.lineage import Lineage
from checkpoints.tallies import Chunk, ChunkSums, Tallies
from reconcilers.capture.frontier import Marks, Proven
from reconcilers.declared.tally import NOTHING, Sums
from reconcilers.words.errors import ReconcilerError
from reconcilers.words.model import Micros
from streaming.counters.ports import FrontierMarks

log = logging.getLogger("reconciler")

MOST_DOUBTS = 1_000
"""Further doubts are dropped: one is enough to end memory."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A chunk that was counted at a time (µs), and to other sums later, without a mark.

    It is decided when the frontier has passed ``marks``, which are read after ``ask_at`` (µs).
    """

    mailboxid: UUID
    chunk: int
    counted_at: Micros
    ask_at: Micros
    marks: Marks | None = None


@dataclass(frozen=True, slots=True)
class LossRules:
    """Two clocks differ by less than ``slack`` (µs).

    A cell that expires gives no event; its chunk is marked at most ``expiries`` (µs) later.
    """

    slack: Micros
    expiries: Micros


@dataclass(slots=True)
class WatchedTallies:
    """Compares a whole count of a mailbox with the chunks that nobody has marked.

    A count from before ``since`` (µs) is not used: until then chunks had another width. ``lost``
    ends memory for the reason it is given.
    """

    kept: Tallies
    lineage: Lineage
    frontier: FrontierMarks
    clock: Callable[[], Micros]
    rules: LossRules
    lost: Callable[[str], None]
    since: Micros = 0
    _doubts: list[Doubt] = field(default_factory=list)

    def begin(self) -> None:
        """Read since when chunks of this width are marked. Raises `Retryable`."""
        self.since = self.kept.marked_in_this_width_since(self.clock())

    def of_mailbox(self, mailboxid: UUID) -> ChunkSums:
        """The kept chunks of a mailbox; not whole if they were counted before ``since``."""
        book = self.kept.of_mailbox(mailboxid)
        if book.whole_at is not None and book.whole_at < self.since:
            return replace(book, whole=False)
        return book

    def counted_whole(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        """Keep the sums of all chunks of mailboxes, and doubt those that differ without a mark."""
        before = {each: self.of_mailbox(each) for each in sums}
        self.kept.counted_whole(sums, began)
        ask_at = self.clock() + self.rules.expiries
        until = began - self.rules.slack
        for mailboxid, its in sums.items():
            for number, counted_at in unmarked(before[mailboxid], its, self.rules.slack, until):
                if len(self._doubts) < MOST_DOUBTS:
                    self._doubts.append(Doubt(mailboxid, number, counted_at, ask_at))

    # --- doubts

    def heard(self, proven: Proven) -> None:
        """Decide the doubts that this frontier has passed. After an error they are kept."""
        try:
            self._read_marks()
            self._decide_by(proven)
        except ReconcilerError as failed:
            log.warning("not known whether changes were lost: %s", failed)

    def _read_marks(self) -> None:
        now = self.clock()
        if not any(each.marks is None and each.ask_at <= now for each in self._doubts):
            return
        marks = self.frontier.marks()
        self._doubts = [
            replace(each, marks=marks) if each.marks is None and each.ask_at <= now else each
            for each in self._doubts
            if marks is not None or each.marks is not None or each.ask_at > now
        ]

    def _decide_by(self, proven: Proven) -> None:
        """If nodes or tables have changed since, a doubt proves nothing and is dropped."""
        passed = [each for each in self._doubts if each.marks and each.marks.passed(proven)]
        watched = self.frontier.watched() if passed else None
        for each in passed:
            if each.marks and each.marks.watched == watched:
                self._decide(each)
            self._doubts.remove(each)

    def _decide(self, doubt: Doubt) -> None:
        chunk = self.kept.of_mailbox(doubt.mailboxid).chunks.get(doubt.chunk, Chunk())
        marked_later = replace(chunk, counted_at=doubt.counted_at).stale(self.rules.slack)
        watching = self.lineage.watching()
        if marked_later or watching is None or watching.since > doubt.counted_at:
            return
        self.lost(
            f"events were lost: chunk {doubt.chunk} of mailbox {doubt.mailboxid} has changed"
            " without an event"
        )


def unmarked(
    before: ChunkSums, sums: Mapping[int, Sums], slack: Micros, until: Micros
) -> Iterator[tuple[int, Micros]]:
    """The unmarked chunks that were counted to other sums before, with the time of that count (µs).

    Only counts from before ``until`` (µs): later ones may be newer than the whole count.
    """
    if not before.whole or before.whole_at is None:
        return
    for number in before.chunks.keys() | sums.keys():
        had = before.chunks.get(number) or Chunk(NOTHING, before.whole_at)
        if had.counted_at is None or had.counted_at >= until or had.stale(slack):
            continue
        if (had.sums or NOTHING) != sums.get(number, NOTHING):
            yield number, had.counted_at
