"""The fakes of `checkpoints.tallies`, in this process's memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from threading import Lock
from uuid import UUID

from checkpoints.clock import HOUR
from checkpoints.tallies import Chunk, ChunkSums
from reconcilers.declared.tally import NOTHING, Sums
from reconcilers.words.model import Micros


class MemoryTallies:
    """`checkpoints.tallies.Tallies` in dictionaries."""

    def __init__(self) -> None:
        self._chunks: dict[UUID, dict[int, Chunk]] = {}
        self._noted: dict[int, set[UUID]] = {}
        self._whole: dict[UUID, Micros] = {}
        self._since: Micros | None = None

    def marked_in_this_width_since(self, now: Micros) -> Micros:
        """There is one width only: since the first time that somebody asks."""
        self._since = now if self._since is None else self._since
        return self._since

    def mark(self, touched: Mapping[UUID, Collection[int]], at: Micros) -> None:
        """These chunks have changed; a mailbox is noted without any, too."""
        for mailboxid, numbers in touched.items():
            self._noted.setdefault(at // HOUR, set()).add(mailboxid)
            chunks = self._chunks.setdefault(mailboxid, {})
            for number in numbers:
                before = chunks.get(number, Chunk())
                chunks[number] = replace(before, marked_at=max(at, before.marked_at or at))

    def marked_in(self, hour: int) -> Iterator[UUID]:
        yield from list(self._noted.get(hour, ()))

    def of_mailbox(self, mailboxid: UUID) -> ChunkSums:
        chunks, whole_at = dict(self._chunks.get(mailboxid, {})), self._whole.get(mailboxid)
        return ChunkSums(chunks, whole_at is not None, whole_at)

    def of_mailboxes(self, mailboxids: Collection[UUID]) -> dict[UUID, ChunkSums]:
        there = self._chunks.keys() | self._whole.keys()
        return {each: self.of_mailbox(each) for each in mailboxids if each in there}

    def counted(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        for mailboxid, its in sums.items():
            chunks = self._chunks.setdefault(mailboxid, {})
            for number, each in its.items():
                before = chunks.get(number, Chunk())
                if before.counted_at is None or before.counted_at <= began:
                    chunks[number] = replace(before, sums=each, counted_at=began)

    def counted_whole(self, sums: Mapping[UUID, Mapping[int, Sums]], began: Micros) -> None:
        for mailboxid, its in sums.items():
            others = self._chunks.get(mailboxid, {}).keys() - its.keys()
            self.counted({mailboxid: {**dict.fromkeys(others, NOTHING), **its}}, began)
            self._whole[mailboxid] = max(began, self._whole.get(mailboxid, began))


class MemoryRounds:
    """`checkpoints.tallies.Rounds` in a dictionary."""

    def __init__(self) -> None:
        self._rounds: dict[tuple[str, str], int] = {}
        self._lock = Lock()

    def current(self, tally: str, key: str) -> int:
        return self._rounds.get((tally, key), 0)

    def claim(self, tally: str, key: str, after: int) -> bool:
        with self._lock:
            if self.current(tally, key) != after:
                return False
            self._rounds[tally, key] = after + 1
            return True
