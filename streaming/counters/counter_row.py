"""Counter rows, and the mailboxes that each sums up: one mailbox, or those of a quota root."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from reconcilers.declared.family import Family
from reconcilers.declared.tally import QuotaRoot, Tally
from reconcilers.rows.finding import Finding
from reconcilers.words.errors import Deferred
from reconcilers.words.model import Slot
from reconcilers.words.waiting import Wait, Waiting
from streaming.counters.ports import OwnerTables
from streaming.steps.pauses import OWNERS_KNOWN


@dataclass(frozen=True, slots=True)
class CounterRow:
    """One row of a tally: of a mailbox, or of a user's quota ``root``."""

    family: str
    tally: Tally
    key: UUID | str
    root: QuotaRoot | None = None

    @property
    def slot(self) -> Slot:
        """The slot of its finding."""
        return Slot(self.key)

    def __str__(self) -> str:
        """The row's name in a sentence."""
        row = self.tally.row_of(self.key)
        named = f"{'mailbox' if self.root is None else 'quota root'} {self.key}"
        return f"{named} ({row})" if row else named


@dataclass(slots=True)
class Owners:
    """Which mailboxes a counter sums up. It reads an owner once, and `read_again` repeats that."""

    tables: OwnerTables
    _known: dict[UUID, QuotaRoot] = field(default_factory=dict)
    _theirs: dict[QuotaRoot, set[UUID]] = field(default_factory=dict)

    def root_of(self, mailboxid: UUID) -> QuotaRoot | None:
        """The quota root of a mailbox, None when the mailbox does not exist."""
        known = self._known.get(mailboxid)
        return known if known is not None else self._read(mailboxid)

    def _read(self, mailboxid: UUID) -> QuotaRoot | None:
        root = self.tables.owner(mailboxid)
        if len(self._known) >= OWNERS_KNOWN:
            self._known.clear()
            self._theirs.clear()
        if root is not None:
            self._known[mailboxid] = root
            self._theirs.setdefault(root, set()).add(mailboxid)
        return root

    def read_again(self, counter: CounterRow) -> None:
        """Read the owners of a counter's mailboxes again, also of those without a path."""
        named = self._theirs.get(counter.root, ()) if counter.root is not None else ()
        for each in [counter.key] if isinstance(counter.key, UUID) else list(named):
            self._forget(each)
            self.root_of(each)

    def _forget(self, mailboxid: UUID) -> None:
        root = self._known.pop(mailboxid, None)
        if root is not None:
            self._theirs[root].discard(mailboxid)

    def mailboxes(self, counter: CounterRow) -> frozenset[UUID]:
        """The mailboxes that a counter sums up; none if its mailbox or user has none any more.

        Raises `Deferred` if the tables of mailboxes and paths disagree on a user's mailboxes.
        """
        if counter.root is None:
            assert isinstance(counter.key, UUID)
            return frozenset() if self.root_of(counter.key) is None else frozenset({counter.key})
        root, named = counter.root, self.tables.mailboxes(counter.root)
        odd = {each for each in named if self.root_of(each) != root}
        odd |= self._theirs.get(root, set()) - named
        for each in odd:
            self._forget(each)
        doubtful = sorted(
            str(each) for each in odd if (self.root_of(each) == root) != (each in named)
        )
        if doubtful:
            told = f"whose mailbox {', '.join(doubtful[:3])} is, is in doubt"
            raise Deferred(Waiting(Wait.OWNER, told))
        return named


@dataclass(frozen=True, slots=True)
class CounterRows:
    """The counter rows that change with a mailbox: its own, and its user's.

    A tally has rows only in the table for which ``is_kept`` is true, the one that James writes.
    """

    families: tuple[Family, ...]
    owners: Owners
    is_kept: Callable[[Tally], bool] = lambda _tally: True

    def of_mailbox(self, mailboxid: UUID) -> Iterator[CounterRow]:
        """The counter rows of a changed mailbox; without a user's if the mailbox does not exist."""
        for family in self.families:
            for tally in filter(self.is_kept, family.tallies):
                if tally.per_quota_root:
                    root = self.owners.root_of(mailboxid)
                    if root is not None:
                        yield CounterRow(family.name, tally, str(root), root)
                else:
                    yield CounterRow(family.name, tally, mailboxid)

    def of_finding(self, finding: Finding) -> Iterator[CounterRow]:
        """The counter row of a finding; none if its tally is not kept."""
        for family in self.families:
            for tally in family.tallies:
                if (family.name, tally.name) != (finding.family, finding.projection):
                    continue
                if not self.is_kept(tally):
                    continue
                (key,) = finding.slot.key
                if isinstance(key, UUID):
                    yield CounterRow(family.name, tally, key)
                else:
                    root = QuotaRoot.of(str(key))
                    yield CounterRow(family.name, tally, str(root), root)
