"""Chunks that nobody has marked: what a whole count of them tells.

A change marks its chunk. So a chunk that holds something else than it was counted to, and is not
marked, has changed without an event: that was lost, and memory with it. But an event may still be
under way, or wait for the delay. So this is asked only when all that was written before some time
after the count has come out: every mark of it is there then.
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
"""Further ones are forgotten: one is enough to end memory."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A chunk that was counted at a time (µs), and to something else later, without a mark.

    When all before the ``marks`` has come out, it is decided; they are read after ``ask_at``.
    """

    mailboxid: UUID
    chunk: int
    counted_at: Micros
    ask_at: Micros
    marks: Marks | None = None


@dataclass(frozen=True, slots=True)
class LossRules:
    """Two clocks differ by less than ``slack``; all µs.

    A cell that expires gives no event; by ``expiries`` after it, its chunk is marked all the same.
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
        """Learn since when chunks of this width are marked. Raises `Retryable`."""
        self.since = self.kept.marked_in_this_width_since(self.clock())

    def of_mailbox(self, mailboxid: UUID) -> ChunkSums:
        """Nothing is whole that was counted while another width was marked."""
        book = self.kept.of_mailbox(mailboxid)
        if book.whole_at is not None and book.whole_at < self.since:
            return replace(book, whole=False)
        return book

    def counted_whole(self, mailboxid: UUID, sums: Mapping[int, Sums], began: Micros) -> None:
        """As kept; chunks that differ, though nobody has marked them, are in doubt."""
        before = self.of_mailbox(mailboxid)
        self.kept.counted_whole(mailboxid, sums, began)
        ask_at = self.clock() + self.rules.expiries
        until = began - self.rules.slack
        for number, counted_at in unmarked(before, sums, self.rules.slack, until):
            if len(self._doubts) < MOST_DOUBTS:
                self._doubts.append(Doubt(mailboxid, number, counted_at, ask_at))

    # --- doubts

    def heard(self, proven: Proven) -> None:
        """So far everything has come out. What cannot be asked now is asked again."""
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
        """Where nodes or tables have changed since, nothing is proven."""
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
        why = (
            f"events were lost: chunk {doubt.chunk} of mailbox {doubt.mailboxid} has changed, and"
            " none has told of it"
        )
        self.lost(why)


def unmarked(
    before: ChunkSums, sums: Mapping[int, Sums], slack: Micros, until: Micros
) -> Iterator[tuple[int, Micros]]:
    """The chunks that were counted to something else before, and when, if nobody marked them.

    Before ``until``: what was counted while the whole count went on may be newer than that.
    """
    if not before.whole or before.whole_at is None:
        return
    for number in before.chunks.keys() | sums.keys():
        had = before.chunks.get(number) or Chunk(NOTHING, before.whole_at)
        if had.counted_at is None or had.counted_at >= until or had.stale(slack):
            continue
        if (had.sums or NOTHING) != sums.get(number, NOTHING):
            yield number, had.counted_at
