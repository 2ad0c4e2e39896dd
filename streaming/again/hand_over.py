"""Hands suspects over to the live stream, whose delay, re-check, breakers and guard settle them.

They are published at half the pace that opens a breaker of the stream. If no stream runs, they wait
for one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta

from checkpoints.bookmarks import Bookmark, Positions
from checkpoints.clock import to_micros, to_seconds
from checkpoints.journal import Journal
from reconcilers.declared.family import Family
from reconcilers.rows.finding import State
from reconcilers.rows.seen import wakes_of
from reconcilers.words.errors import Retryable
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, ProjectionSlot, Slot, Suspect, Wake

CHUNK = 50
LOOK_EVERY = 1.0
"""Seconds between two reads of the settled offsets."""
COMES_BACK_WITHIN = 120
"""Reads for which a stream that has run and stopped is awaited: it may be restarted."""
MOST_FOLLOWED = 100_000
"""Suspects whose endings are reported; further ones are not followed."""
GONE = "gone at the re-check"
NOT_JUDGED = "to be looked at again"
WAITS_FOR_TABLE = "waiting for its table"
REPAIRED = frozenset({State.INTENDED, State.VERIFIED, State.HEALED})
"""States of a finding whose repair was written, whether verified yet or not."""


@dataclass(frozen=True, slots=True)
class LiveStream:
    """A stream as seen from outside: its ``topic``, the topic's ``ends``, the ``settled`` offsets.

    ``running``: whether a stream settles what is published now. ``waiting`` returns which of some
    places are published and not settled; each is usually judged within ``judged_within`` (s).
    ``comes_back``: a stream that has stopped may be restarted.
    """

    topic: str
    publish: Callable[[Iterable[Wake]], None]
    ends: Callable[[], Positions]
    settled: Callable[[], Bookmark | None]
    running: Callable[[], bool]
    waiting: Callable[[Collection[ProjectionSlot]], Collection[ProjectionSlot]]
    judged_within: float
    comes_back: bool = True


@dataclass(frozen=True, slots=True)
class SuspectPace:
    """A breaker's limits a minute, of suspects and of removals; suspects take half of them."""

    suspects_per_minute: int
    removals_per_minute: int

    @property
    def most(self) -> int:
        """The most suspects that are published at once: half a minute's limit, or `CHUNK`."""
        limit = min(self.suspects_per_minute, self.removals_per_minute)
        return max(1, min(CHUNK, limit // 2))

    def takes(self, suspects: Iterable[Suspect]) -> float:
        """How long (s) to wait for these suspects."""
        limits = Counter(each.kind is Kind.EXTRA_ROW for each in suspects)
        removals = 120 * limits[True] / self.removals_per_minute
        return max(removals, 120 * limits.total() / self.suspects_per_minute)


@dataclass(slots=True)
class Closing:
    """The endings of suspects by projection and kind; so many ``waiting`` have none yet."""

    endings: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    waiting: int = 0
    topic: str = ""

    @property
    def waits(self) -> bool:
        """Whether a stream must still look at some."""
        found = sum(self.endings.values(), Counter[str]())
        return bool(self.waiting or found[NOT_JUDGED] or found[WAITS_FOR_TABLE])

    def lines(self) -> Iterator[str]:
        """A line for each kind of difference in a projection."""
        for (projection, kind), found in sorted(self.endings.items()):
            told = ", ".join(f"{number} {how}" for how, number in sorted(found.items()))
            yield f"{projection}: {kind}: {found.total()} seen: {told}"
        if self.waiting:
            yield (
                f"{self.waiting} suspects wait in topic {self.topic}:"
                " `reconcile stream` examines them when it runs; --settle runs one meanwhile"
            )


@dataclass(slots=True)
class _Sent:
    """How many were published, the first when (µs), and whether a stream was seen to run.

    ``judged_by`` (µs) is the deadline for their judgement, 0 until `HandOver` waits for it.
    """

    count: int = 0
    first: Micros = 0
    has_run: bool = False
    judged_by: Micros = 0


@dataclass(slots=True)
class HandOver:
    """Hands suspects of one family to one stream. ``wait`` waits (s), or raises if stopped."""

    family: Family
    stream: LiveStream
    journal: Journal
    pace: SuspectPace
    wait: Callable[[float], None]
    clock: Callable[[], Micros]
    _followed: dict[ProjectionSlot, Kind | None] = field(default_factory=dict)
    _sent: _Sent = field(default_factory=_Sent)

    def resume(self, suspects: int, since: Micros) -> None:
        """Count suspects that an earlier process handed over, at ``since`` (µs) or later."""
        self._sent.count += suspects
        self._sent.first = min(self._sent.first or since, since)

    def settled_by(self, running: Callable[[], bool]) -> None:
        """Let the stream settle them that runs while ``running`` is true; it is not restarted."""
        self.stream = replace(self.stream, running=running, comes_back=False)

    def publish(self, suspects: Sequence[Suspect]) -> None:
        """Hand suspects over: durable when it returns. Raises `Unreachable`."""
        most = self.pace.most
        for start in range(0, len(suspects), most):
            some = suspects[start : start + most]
            if self._runs():
                self.wait(self.pace.takes(some))
            self._sent.count += len(some)
            self._sent.first = self._sent.first or self.clock()
            of = self.family
            self.stream.publish(wake for each in some for wake in wakes_of(of, each, each.kind))
            for each in some:
                if len(self._followed) < MOST_FOLLOWED:
                    self._followed[each.projection, each.slot] = each.kind

    def settled(self) -> bool:
        """Wait until the suspects handed over are settled; False if no stream settles them."""
        if not self._sent.count:
            return True
        ends, away = self.stream.ends(), 0
        while not _passed(self.stream.settled(), ends):
            if self._is_gone(away := 0 if self._runs() else away + 1):
                return False
            self.wait(LOOK_EVERY)
        return True

    def _is_gone(self, away: int) -> bool:
        """Whether a stream that was missing at so many reads in a row is not awaited any more."""
        waits = self._sent.has_run and self.stream.comes_back
        return bool(away) and (not waits or away > COMES_BACK_WITHIN)

    def _runs(self) -> bool:
        runs = self.stream.running()
        self._sent.has_run |= runs
        return runs

    def revisit(self) -> None:
        """Hand over the unresolved findings, because lineage is complete now."""
        unresolved = [
            Suspect(each.slot, frozenset(), each.kind, each.projection)
            for each in self.journal.open_findings(self.family)
            if each.kind is Kind.UNRESOLVED and each.projection in self.family.names
        ]
        self.publish(unresolved)

    def until_verified(self) -> None:
        """Wait until each repair is verified or given up, before a stream ends."""
        if not self.settled():
            return
        self._until_judged()
        while self.settled() and self.stream.running() and self._unverified():
            self.wait(max(LOOK_EVERY, len(self._followed) / 1_000))

    def _unverified(self) -> bool:
        return any(
            finding.state is State.INTENDED
            for projection, slots in _by_projection(self._followed)
            for finding in self.journal.recall(self.family, projection, slots).values()
        )

    def finish(self) -> Closing:
        """Wait until all are settled and usually judged; returns what became of them."""
        if not self.settled():
            return Closing(waiting=self._sent.count, topic=self.stream.topic)
        not_judged = self._until_judged()
        closing, repaired = Closing(), self._repaired()
        for projection, slots in _by_projection(self._followed):
            left = self.journal.recall(self.family, projection, slots)
            refuses = self._table_refuses(projection)
            for slot in slots:
                open_now = left.get(slot)
                state = open_now.state if open_now is not None else repaired.get((projection, slot))
                kind = str(self._followed[projection, slot] or Kind.UNREADABLE)
                found = closing.endings.setdefault((projection, kind), Counter())
                if state is None and (projection, slot) in not_judged:
                    found[NOT_JUDGED] += 1
                elif state is None and refuses:
                    found[WAITS_FOR_TABLE] += 1
                else:
                    found[_ending(state)] += 1
        return closing

    def _until_judged(self) -> set[ProjectionSlot]:
        """Wait for looks that the stream puts off; returns the places that it still puts off."""
        most = to_micros(2 * self.stream.judged_within)
        self._sent.judged_by = self._sent.judged_by or self.clock() + most
        left, away = self._without_finding(), 0
        while left := self._put_off(left):
            away = 0 if self._runs() else away + 1
            if self.clock() > self._sent.judged_by or self._is_gone(away):
                break
            self.wait(LOOK_EVERY)
            left = self._undecided(left)
        return left

    def _without_finding(self) -> set[ProjectionSlot]:
        """The places without an open finding, unless their table refuses writes."""
        return self._undecided(
            (projection, slot)
            for projection, slots in _by_projection(self._followed)
            if not self._table_refuses(projection)
            for slot in slots
        )

    def _undecided(self, places: Iterable[ProjectionSlot]) -> set[ProjectionSlot]:
        return {
            (projection, slot)
            for projection, slots in _by_projection(places)
            for slot in set(slots) - self.journal.recall(self.family, projection, slots).keys()
        }

    def _put_off(self, places: set[ProjectionSlot]) -> set[ProjectionSlot]:
        """Those of these places that are published again; all of them if that cannot be read."""
        try:
            return set(self.stream.waiting(places)) if places else set()
        except Retryable:
            return places

    def _table_refuses(self, projection: str) -> bool:
        return bool(self.journal.recall(self.family, projection, [WHOLE_TABLE]))

    def _repaired(self) -> dict[ProjectionSlot, State]:
        """The places whose repair was verified, from the journal's log since the first suspect."""
        found: dict[ProjectionSlot, State] = {}
        if not self._followed:
            return found
        key = [column.name for column in self.family.key]
        for day in _days(self._sent.first, self.clock()):
            for line in self.journal.log(day):
                if line["state"] != State.VERIFIED or not all(name in line for name in key):
                    continue
                parts = [column.value(line[column.name]) for column in self.family.key]
                place = str(line["projection"]), Slot(*parts)
                if place in self._followed and int(str(line["at"])) >= self._sent.first:
                    found[place] = State.VERIFIED
        return found


def _by_projection(places: Iterable[ProjectionSlot]) -> Iterable[tuple[str, list[Slot]]]:
    found: dict[str, list[Slot]] = defaultdict(list)
    for projection, slot in places:
        found[projection].append(slot)
    return found.items()


def _passed(bookmark: Bookmark | None, ends: Positions) -> bool:
    settled: Positions = {} if bookmark is None else bookmark.settled
    return all(settled.get(place, 0) >= end for place, end in ends.items())


def _ending(state: State | None) -> str:
    if state is None:
        return GONE
    return "repaired" if state in REPAIRED else str(state)


def _days(since: Micros, until: Micros) -> Iterator[date]:
    day, last = (datetime.fromtimestamp(to_seconds(at), UTC).date() for at in (since, until))
    while day <= last:
        yield day
        day += timedelta(days=1)
