"""A recount of mailboxes against the truth, in several turns, by ranges of UIDs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.declared.tally import NOTHING, Sum, Sums, together, total
from reconcilers.words.model import Micros
from streaming.counters.count import ROWS_A_RANGE, MailboxCounter


@dataclass(slots=True)
class Recount:
    """The mailboxes ``left`` to count, and the ``sums`` of the ranges that were counted.

    It keeps the sums of a range, not its messages. After an error it continues from that range.
    """

    counting: MailboxCounter
    left: list[UUID]
    sums: Sums = field(default_factory=lambda: NOTHING)
    _began: Micros = 0
    _first: int = 0
    _chunks: Mapping[int, Sums] = field(default_factory=dict)

    def step(self) -> Sums | None:
        """Count several small mailboxes, or one range of a large one.

        Returns all sums, None while mailboxes are left. Raises `Deferred` if a mailbox differs from
        the truth, `Retryable`.
        """
        messages = 0
        while self.left and messages < ROWS_A_RANGE:
            before = self.sums[Sum.COUNT]
            self._range()
            if self._first:
                return None
            messages += self.sums[Sum.COUNT] - before
        return None if self.left else self.sums

    def _range(self) -> None:
        mailboxid = self.left[0]
        if not self._first:
            self._began = self.counting.clock()
        counted = self.counting.range_against_truth(mailboxid, self._first)
        chunks = together(self._chunks, counted.chunks)
        if counted.after is None:
            self.counting.watched.counted_whole({mailboxid: chunks}, self._began)
            self.left.pop(0)
            chunks = {}
        self.sums = total([self.sums, *counted.chunks.values()])
        self._chunks, self._first = chunks, counted.after or 0
