"""What happened to the findings of some days, folded from the journal's log line by line. Pure.

A finding is counted once in each state, however often the log has the line. Its memory is bounded:
after `MOST_FINDINGS` findings only the lines of those are counted, and ``left_out`` says how many
lines were of others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappush, heappushpop
from typing import Generic, TypeVar

from reconcilers.rows.finding import State
from reconcilers.rows.nines import KnownShare
from reconcilers.words.model import SECOND, Micros
from reconcilers.words.waiting import Wait

MOST_FINDINGS = 100_000
MOST_EXAMPLES = 20
HEALING: tuple[Micros, ...] = (60 * SECOND, 600 * SECOND)
"""Whether differences end without us is counted within these times (µs) after they are found."""

LogLine = TypeVar("LogLine")


@dataclass(frozen=True, slots=True)
class LoggedState(Generic[LogLine]):
    """A line of the log: a finding came to a ``state`` ``at`` a time (µs).

    ``name`` identifies the finding: its place and when it was found. ``wrote`` says whether a
    repair of ours had been sent. ``line`` is kept if the finding becomes an example.
    """

    name: str
    system: str
    kind: str
    state: State
    at: Micros
    found_at: Micros
    oldest: Micros | None
    wrote: bool
    wait: Wait | None
    line: LogLine


@dataclass(slots=True)
class FindingPast:
    """The states of one finding; times are µs."""

    system: str
    kind: str
    found_at: Micros
    states: set[State] = field(default_factory=set)
    waits: set[Wait] = field(default_factory=set)
    wrote: bool = False
    healed_at: Micros | None = None
    repaired_after: Micros | None = None


@dataclass(slots=True)
class Summary(Generic[LogLine]):
    """The findings that were found after ``since`` (µs), and all that the log has of them."""

    since: Micros
    most: int = MOST_FINDINGS
    lines: int = 0
    left_out: int = 0
    pasts: dict[bytes, FindingPast] = field(default_factory=dict)
    _examples: dict[bytes, LogLine] = field(default_factory=dict)
    _order: list[tuple[int, bytes]] = field(default_factory=list)

    def add(self, logged: LoggedState[LogLine]) -> None:
        """Count one line of the log; the lines come oldest first."""
        if logged.at < self.since:
            return
        self.lines += 1
        name = blake2b(logged.name.encode(), digest_size=16).digest()
        past = self.pasts.get(name)
        if past is None:
            if len(self.pasts) >= self.most:
                self.left_out += 1
                return
            past = self.pasts[name] = FindingPast(logged.system, logged.kind, logged.found_at)
            self._choose(name, logged.line)
        if name in self._examples:
            self._examples[name] = logged.line
        _advance(past, logged)

    def _choose(self, name: bytes, line: LogLine) -> None:
        """Keep the findings with the lowest hashes: a random choice, the same at each report."""
        rank = (-int.from_bytes(name, "big"), name)
        if len(self._order) < MOST_EXAMPLES:
            heappush(self._order, rank)
            self._examples[name] = line
            return
        _, dropped = heappushpop(self._order, rank)
        if dropped != name:
            del self._examples[dropped]
            self._examples[name] = line

    @property
    def examples(self) -> list[LogLine]:
        """The newest line of each finding that was chosen at random."""
        return list(self._examples.values())

    @property
    def found(self) -> Iterator[FindingPast]:
        """The findings that were found since then."""
        return (each for each in self.pasts.values() if each.found_at >= self.since)

    def by_state(self) -> Counter[tuple[str, str, State]]:
        """How many findings came to each state, by system and kind."""
        return Counter(
            (each.system, each.kind, state) for each in self.pasts.values() for state in each.states
        )

    def by_wait(self) -> Counter[Wait]:
        """How many findings have waited, by reason; one may have waited for several."""
        return Counter(wait for each in self.pasts.values() for wait in each.waits)

    def times_to_repair(self) -> dict[str, list[Micros]]:
        """The ages (µs) of the oldest changes at the first repairs, sorted, by system."""
        times: dict[str, list[Micros]] = {}
        for each in self.pasts.values():
            if each.repaired_after is not None:
                times.setdefault(each.system, []).append(each.repaired_after)
        return {system: sorted(some) for system, some in sorted(times.items())}

    def healed_within(self, span: Micros, now: Micros) -> KnownShare:
        """Of the findings without a repair of ours: how many ended by themselves within a time.

        One that is younger than this and open is missing.
        """
        good = bad = missing = 0
        for each in self.found:
            if each.wrote:
                continue
            if each.healed_at is not None and each.healed_at - each.found_at <= span:
                good += 1
            elif each.healed_at is not None or now - each.found_at > span:
                bad += 1
            else:
                missing += 1
        return KnownShare(good, bad, missing)

    def not_written(self) -> Counter[tuple[str, str]]:
        """What repair mode would have written, or would write when it may: by system and kind."""
        return Counter(
            (each.system, each.kind)
            for each in self.pasts.values()
            if not each.wrote and each.states & {State.OBSERVED, State.HELD}
        )


def _advance(past: FindingPast, logged: LoggedState[LogLine]) -> None:
    past.states.add(logged.state)
    past.kind = logged.kind
    past.wrote |= logged.wrote
    if logged.wait is not None:
        past.waits.add(logged.wait)
    if logged.state is State.HEALED and past.healed_at is None:
        past.healed_at = logged.at
    first = logged.state is State.INTENDED and past.repaired_after is None
    if first and logged.oldest is not None:
        past.repaired_after = max(logged.at - logged.oldest, 0)


def quantile(ordered: list[Micros], part: float) -> Micros:
    """The smallest value that this part of the values does not exceed; they are sorted."""
    return ordered[max(0, min(len(ordered) - 1, -int(-part * len(ordered) // 1) - 1))]


def by_day(pasts: Iterable[FindingPast]) -> Counter[tuple[int, str]]:
    """Findings by the day they were found (days since 1970, UTC) and what became of them."""
    return Counter((each.found_at // (86_400 * SECOND), outcome_of(each)) for each in pasts)


VERIFIED, WRITTEN = "repaired and verified", "repaired, not verified"
HEALED, LEFT = "healed without us", "left"
OUTCOMES = (VERIFIED, WRITTEN, HEALED, LEFT)
"""What may become of a finding."""


def outcome_of(past: FindingPast) -> str:
    """What became of a finding: one of `OUTCOMES`."""
    if State.VERIFIED in past.states:
        return VERIFIED
    if past.wrote:
        return WRITTEN
    return HEALED if past.healed_at is not None else LEFT
