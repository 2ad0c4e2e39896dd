"""Answers to each slice's questions about all open findings, kept up to date and never recomputed.

No question visits findings that it does not return: 200,000 waiting findings cost nothing.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding
from reconcilers.words.model import KeyValue, Kind, Micros, Slot
from streaming.monitoring.metrics import Labels
from streaming.pipeline.open_by_group import MessagesByGroup
from streaming.pipeline.open_finding import OpenFinding, opened

BySlot = dict[Slot, OpenFinding]
SINGLED_OUT = frozenset({Kind.UNREADABLE})
"""Kinds whose findings can be listed alone."""
AT_ONCE = 1_000
"""Most findings that are due at once; the rest is due with the next slice."""
SLACK = 1_000


@dataclass(slots=True)
class OpenIndex:
    """One family's open findings, one for each slot of a projection."""

    family: Family
    counts: Counter[Labels] = field(default_factory=Counter)
    _at: defaultdict[str, dict[KeyValue | None, BySlot]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _of_kind: defaultdict[Kind, dict[tuple[str, Slot], OpenFinding]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    _due: list[OpenFinding] = field(default_factory=list)
    _excess: list[tuple[Micros, OpenFinding]] = field(default_factory=list)
    _messages: MessagesByGroup = field(default_factory=MessagesByGroup)
    _changed: set[UUID] = field(default_factory=set)

    def fill(self, findings: Iterable[Finding]) -> None:
        """Take in all findings of the journal."""
        for finding in findings:
            found = self._put(opened(finding))
            if _has_a_look(found):
                self._due.append(found)
        heapq.heapify(self._due)

    def keep(self, finding: Finding) -> None:
        """Take in an open finding, new or changed."""
        self._keep(opened(finding))

    def look_at(self, found: OpenFinding, at: Micros) -> None:
        """Set when (µs) the finding is due."""
        self._keep(replace(found, next_look=at))

    def at(self, projection: str, slot: Slot) -> OpenFinding | None:
        """The open finding there, or None."""
        return self._at[projection].get(_group_of(slot), {}).get(slot)

    def drop(self, projection: str, slot: Slot) -> None:
        """Remove the open finding there, if there is one."""
        groups, group = self._at[projection], _group_of(slot)
        of_group = groups.get(group, {})
        found = of_group.pop(slot, None)
        if found is None:
            return
        if not of_group:
            del groups[group]
        self._uncount(found)
        self._touched(found)

    def take_due(self, now: Micros) -> Iterator[OpenFinding]:
        """Findings whose next look is due, the longest due first, `AT_ONCE` at most.

        Each is returned once; it is due again after it is kept again.
        """
        left = AT_ONCE
        while left and self._due and (self._due[0].next_look or 0) <= now:
            found = heapq.heappop(self._due)
            if self._stands(found):
                left -= 1
                yield found

    def of_kind(self, kind: Kind) -> Collection[OpenFinding]:
        """The findings of a kind that is `SINGLED_OUT`."""
        return self._of_kind[kind].values()

    def excess_since(self) -> Micros | None:
        """When (µs) the oldest open row was found that gives access and should be gone, or None."""
        while self._excess and not self._stands(self._excess[0][-1]):
            heapq.heappop(self._excess)
        return self._excess[0][0] if self._excess else None

    def messages(self) -> MessagesByGroup:
        """Messages with an open finding, by mailbox; findings of an index do not count."""
        if self._changed:
            listed = self._at[self.family.listing.name]
            changed = {each: listed.get(each, {}) for each in self._changed}
            self._messages = self._messages.changed(changed)
            self._changed.clear()
        return self._messages

    def __iter__(self) -> Iterator[OpenFinding]:
        """All open findings."""
        for groups in self._at.values():
            for of_group in groups.values():
                yield from of_group.values()

    def __len__(self) -> int:
        """How many findings are open."""
        return self.counts.total()

    def _keep(self, found: OpenFinding) -> None:
        found = self._put(found)
        if _has_a_look(found):
            heapq.heappush(self._due, found)
        most = len(self) * 5 // 4 + SLACK
        if len(self._due) > most:
            self._due = [each for each in self._due if self._stands(each)]
            heapq.heapify(self._due)
        if len(self._excess) > most:
            self._excess = [each for each in self._excess if self._stands(each[-1])]
            heapq.heapify(self._excess)

    def _put(self, found: OpenFinding) -> OpenFinding:
        """Store the finding with the slot object and group id that are stored already."""
        of_group = self._at[found.projection].setdefault(_group_of(found.slot), {})
        before = of_group.get(found.slot)
        if before is not None:
            found = replace(found, slot=before.slot)
            self._uncount(before)
        elif of_group and found.slot.key:
            same = next(iter(of_group)).key[0]
            found = replace(found, slot=Slot(same, *found.slot.key[1:]))
        of_group[found.slot] = found
        self.counts[_labels(found)] += 1
        if found.kind in SINGLED_OUT:
            self._of_kind[found.kind][found.projection, found.slot] = found
        if found.kind is Kind.EXTRA_ROW and found.projection in self._granting():
            heapq.heappush(self._excess, (found.found_at, found))
        self._touched(found)
        return found

    def _granting(self) -> set[str]:
        return {each.name for each in self.family.projections if each.grants_access}

    def _stands(self, found: OpenFinding) -> bool:
        """Whether this object is the open finding of its slot."""
        return self.at(found.projection, found.slot) is found

    def _uncount(self, found: OpenFinding) -> None:
        labels = _labels(found)
        self.counts[labels] -= 1
        if not self.counts[labels]:
            del self.counts[labels]
        self._of_kind[found.kind].pop((found.projection, found.slot), None)

    def _touched(self, found: OpenFinding) -> None:
        group = _group_of(found.slot)
        if found.projection == self.family.listing.name and isinstance(group, UUID):
            self._changed.add(group)


def _group_of(slot: Slot) -> KeyValue | None:
    return slot.key[0] if slot.key else None


def _labels(found: OpenFinding) -> Labels:
    return found.projection, found.kind.value, found.state.value


def _has_a_look(found: OpenFinding) -> bool:
    return found.next_look is not None and found.is_of_a_row
