"""The fakes, in this process's memory. They pass the contract tests of the real ones.

Findings and writes go through the codec, so that what a real journal could not keep fails here too.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from checkpoints import codec
from checkpoints.clock import HOUR, now_micros
from checkpoints.expiries import Expiry
from checkpoints.holds import Holds
from checkpoints.lineage import Delete, SourceInGroup
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from reconcilers.limits.breakers import Breaker, Opening, first_reasons
from reconcilers.rows.acceptance import NONE_ACCEPTED, Accepted
from reconcilers.rows.deletes import (
    Deletes,
    OwnDelete,
    ProjectionDelete,
    RowDeletes,
    TruthDelete,
    deletes_of,
)
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.memory import Entry, Watching
from reconcilers.words.model import KeyValue, Micros, Slot
from tests.fakes.checkpoints.holds import MemoryHolds

DAY = 24 * HOUR
Place = tuple[str, str, Slot]


class MemoryJournal:
    """`checkpoints.journal.Journal` in dictionaries."""

    def __init__(
        self,
        clock: Callable[[], Micros] = now_micros,
        families: Iterable[Family] = FAMILIES,
    ) -> None:
        self._families = {each.name: each for each in families}
        self._clock = clock
        self.holds: Holds = MemoryHolds()
        self._open: dict[Place, str] = {}
        self._accepted: dict[Place, frozenset[Accepted]] = {}
        self._log: list[tuple[Micros, str]] = []
        self._breakers: dict[tuple[Breaker, Micros], tuple[str, Micros | None]] = {}

    def recall(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Finding]:
        places = ((family.name, projection, slot) for slot in slots)
        return {place[2]: self._found(place, family) for place in places if place in self._open}

    def _found(self, place: Place, family: Family) -> Finding:
        return self._with_accepted(codec.finding_from_json(json.loads(self._open[place]), family))

    def _with_accepted(self, found: Finding) -> Finding:
        given = self._accepted.get(_place(found), NONE_ACCEPTED)
        here = frozenset(each for each in given if each.found_at == found.found_at)
        return replace(found, accepted=here)

    def put(self, finding: Finding) -> None:
        self.touch(finding)
        self._append(finding, finding.state, self._clock())

    def decide(self, finding: Finding) -> None:
        """As `put`: it has one clock."""
        self.put(finding)

    def accept(self, finding: Finding) -> bool:
        place = _place(finding)
        family = self._families[finding.family]
        standing = self._found(place, family) if place in self._open else None
        if standing is None or standing.found_at != finding.found_at:
            return False
        self._accepted[place] = self._accepted.get(place, NONE_ACCEPTED) | finding.accepted
        self.touch(replace(standing, next_look=finding.next_look))
        self._append(finding, finding.state, self._clock())
        return True

    def end(self, finding: Finding, end: State) -> None:
        """As `close`: it has one clock."""
        self.close(finding, end, self._clock())

    def touch(self, finding: Finding) -> None:
        family = self._families[finding.family]
        self._open[_place(finding)] = codec.text_of(codec.finding_to_json(finding, family))

    def close(self, finding: Finding, end: State, at: Micros) -> None:
        self._append(finding, end, at)
        self._open.pop(_place(finding), None)
        self._accepted.pop(_place(finding), None)

    def open_findings(self, family: Family) -> Iterator[Finding]:
        declared = set(family.names)
        for place in list(self._open):
            if place[0] == family.name and place[1] in declared:
                yield self._found(place, family)

    def log(self, day: date) -> Iterator[dict[str, object]]:
        for at, text in sorted(self._log, key=lambda line: line[0]):
            if datetime.fromtimestamp(at // 1_000_000, UTC).date() == day:
                yield json.loads(text)

    def log_at(self, at: Micros) -> Iterator[dict[str, object]]:
        """The log of the day of this time."""
        return self.log(datetime.fromtimestamp(at // 1_000_000, UTC).date())

    def history(
        self, family: Family, projection: str, slot: Slot, since: Micros = 0
    ) -> Iterator[Finding]:
        place = family.name, projection, slot
        in_order = sorted(enumerate(self._log), key=lambda each: (each[1][0], each[0]))
        first = since // DAY - 1
        for _number, (at, text) in in_order[::-1]:
            line = json.loads(text)
            if line["family"] == family.name and at // DAY >= first:
                finding = codec.finding_from_json(line, family)
                if _place(finding) == place:
                    yield finding

    def breakers(self) -> dict[Breaker, str]:
        return first_reasons(self.openings())

    def openings(self) -> list[Opening]:
        return [each for each, closed_at in self.all_openings() if closed_at is None]

    def all_openings(self) -> list[tuple[Opening, Micros | None]]:
        return [
            (Opening(breaker, at, reason), closed_at)
            for (breaker, at), (reason, closed_at) in sorted(self._breakers.items())
        ]

    def open_breaker(self, breaker: Breaker, reason: str, at: Micros) -> None:
        """Open a breaker; the same opening again stays closed once it was."""
        _reason, closed_at = self._breakers.get((breaker, at), ("", None))
        self._breakers[breaker, at] = (reason, closed_at)

    def close_breakers(self, at: Micros, openings: Iterable[Opening] | None = None) -> None:
        for each in self.openings() if openings is None else openings:
            self._breakers[each.breaker, each.at] = (each.reason, at)

    def _append(self, finding: Finding, state: State, at: Micros) -> None:
        family = self._families[finding.family]
        self._log.append((at, codec.text_of(codec.log_line(finding, family, state, at))))


def _place(finding: Finding) -> Place:
    return finding.family, finding.projection, finding.slot


class MemoryLineage:
    """`checkpoints.lineage.Lineage` in dictionaries; what expires does so in `forget`."""

    def __init__(self, clock: Callable[[], Micros] = lambda: 0) -> None:
        self._clock = clock
        self._entries: dict[tuple[KeyValue, Slot], Entry] = {}
        self._deletes: dict[Delete, bool] = {}
        """By whether it is kept for good."""
        self._watching: Watching | None = None

    def of_sources(self, sources: Sequence[KeyValue]) -> dict[KeyValue, list[Entry]]:
        wanted = set(sources)
        found: dict[KeyValue, list[Entry]] = defaultdict(list)
        for entry in self._entries.values():
            if entry.source in wanted:
                found[entry.source].append(entry)
        return dict(found)

    def of_slots(self, slots: Sequence[Slot]) -> dict[Slot, list[Entry]]:
        found: dict[Slot, list[Entry]] = defaultdict(list)
        wanted = set(slots)
        for entry in self._entries.values():
            if entry.slot in wanted:
                found[entry.slot].append(entry)
        return dict(found)

    def of_group(self, group: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        for entry in list(self._entries.values()):
            if entry.slot.group == group:
                yield entry.slot, entry.source

    def of_group_from(self, group: KeyValue, first: KeyValue) -> Iterator[tuple[Slot, KeyValue]]:
        seen = [(slot.key[1], slot, source) for slot, source in self.of_group(group)]
        for value, slot, source in sorted(seen, key=lambda each: each[0]):
            if value >= first:  # type: ignore[operator]
                yield slot, source

    def remember(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._keep(replace(entry, expiring=False))

    def expire(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._keep(replace(entry, expiring=True))

    def _keep(self, entry: Entry) -> None:
        """What is written replaces; what is not written (False, None) leaves what there was."""
        key = (entry.source, entry.slot)
        known = self._entries.get(key, entry)
        self._entries[key] = replace(
            entry,
            in_truth=entry.in_truth or known.in_truth,
            recorded_at=known.recorded_at if entry.recorded_at is None else entry.recorded_at,
            had_at=known.had_at if entry.had_at is None else entry.had_at,
        )

    def remember_deletes(self, deletes: Iterable[Delete]) -> None:
        self._deletes |= dict.fromkeys(deletes, False)

    def keep_deletes(self, slots: Mapping[SourceInGroup, Collection[Slot]]) -> None:
        rows = {slot for each in slots.values() for slot in each}
        for each in self._deletes:
            match each:
                case TruthDelete(source, (group, *_)) if (source, group) in slots:
                    self._deletes[each] = True
                case ProjectionDelete(slot) if slot in rows:
                    self._deletes[each] = True

    def forget(self, kinds: tuple[type, ...] = (TruthDelete, ProjectionDelete, Entry)) -> None:
        """The time of what is not kept for good has come; of deletes some may go before others."""
        self._deletes = {
            each: kept
            for each, kept in self._deletes.items()
            if kept or not isinstance(each, kinds)
        }
        if Entry in kinds:
            self._entries = {key: each for key, each in self._entries.items() if not each.expiring}

    def truth_deletes(self, source: KeyValue, group: KeyValue) -> Deletes:
        seen = ((each.key, each.at) for each in self._of_group(group) if each.source == source)
        return deletes_of(seen)

    def truth_deletes_of(
        self, sources: Mapping[KeyValue, Collection[KeyValue]]
    ) -> dict[SourceInGroup, Deletes]:
        pairs = ((source, group) for group, some in sources.items() for source in some)
        return {(source, group): self.truth_deletes(source, group) for source, group in pairs}

    def projection_deletes_of(self, slots: Iterable[Slot]) -> dict[Slot, RowDeletes]:
        return {slot: self.projection_deletes(slot) for slot in slots}

    def projection_deletes(self, slot: Slot) -> RowDeletes:
        own = [each for each in self._deletes if isinstance(each, OwnDelete) and each.slot == slot]
        ours = {each.at for each in own}
        seen = (each for each in self._deletes if isinstance(each, ProjectionDelete))
        return RowDeletes(
            frozenset(each.at for each in seen if each.slot == slot and each.at not in ours),
            max((each.sent_at for each in own), default=None),
        )

    def truth_deletes_in_group(self, group: KeyValue, since: Micros, until: Micros) -> bool:
        return any(since <= each.at <= until for each in self._of_group(group))

    def _of_group(self, group: KeyValue) -> Iterator[TruthDelete]:
        for each in self._deletes:
            if isinstance(each, TruthDelete) and each.key[0] == group:
                yield each

    def watching(self) -> Watching | None:
        return self._watching

    def watch_from(self, at: Micros, captured: str = "") -> None:
        self._watching = Watching(at, captured=captured, noted_at=self._clock())

    def stop_watching(self) -> None:
        self._watching = None

    def mark_swept(self, at: Micros, since: Micros) -> None:
        """A sweep counts; nothing does while nobody watches."""
        if self._watching is not None and self._watching.since == since:
            self._watching = replace(self._watching, swept_at=at)

    def mark_listed(self, at: Micros, since: Micros) -> None:
        """So does its listing half."""
        if self._watching is not None and self._watching.since == since:
            self._watching = replace(self._watching, listed_at=at)


class MemoryExpiries:
    """`checkpoints.expiries.Expiries` in a set; nothing is forgotten."""

    def __init__(self) -> None:
        self._expected: set[Expiry] = set()

    def expect(self, expiries: Iterable[Expiry]) -> None:
        self._expected.update(expiries)

    def between(self, after: Micros, until: Micros) -> Iterator[Expiry]:
        due = [each for each in self._expected if after < each.due <= until]
        yield from sorted(due, key=lambda each: (each.due, each.slot))
