"""Reads of many counters or mailboxes at a time, one after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from uuid import UUID

from reconcilers.declared.tally import Listed, QuotaRoot, Sums, Tally, UidRange


class ManyReads(ABC):
    """`streaming.counters.screening.ScreenedTables`, by the reads of one at a time."""

    __slots__ = ()

    @abstractmethod
    def stored(self, tally: Tally, key: UUID | str) -> Sums | None: ...

    @abstractmethod
    def owner(self, mailboxid: UUID) -> QuotaRoot | None: ...

    @abstractmethod
    def mailboxes(self, of: QuotaRoot) -> frozenset[UUID]: ...

    @abstractmethod
    def listed(
        self, mailboxid: UUID, first: int = 0, last: int = 2**63 - 1
    ) -> Iterator[Listed]: ...

    def stored_of(self, tally: Tally, keys: Sequence[UUID | str]) -> dict[UUID | str, Sums]:
        found = {each: self.stored(tally, each) for each in keys}
        return {each: sums for each, sums in found.items() if sums is not None}

    def owners_of(self, mailboxids: Sequence[UUID]) -> dict[UUID, QuotaRoot]:
        found = {each: self.owner(each) for each in mailboxids}
        return {each: root for each, root in found.items() if root is not None}

    def mailboxes_of(
        self, roots: Sequence[QuotaRoot]
    ) -> Iterator[tuple[QuotaRoot, frozenset[UUID]]]:
        yield from ((each, self.mailboxes(each)) for each in roots)

    def listed_in(
        self, mailboxids: Sequence[UUID], uids: UidRange, most: int
    ) -> dict[UUID, list[Listed] | None]:
        found = {each: list(self.listed(each, *uids)) for each in mailboxids}
        return {each: rows if len(rows) <= most else None for each, rows in found.items()}
