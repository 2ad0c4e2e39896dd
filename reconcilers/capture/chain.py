"""A chain: the canaries that were received through one lane, as runs without a gap. Pure.

Each canary names the acknowledged one before it, and joins the run that ends with that one. All
canaries behind a gap are one run, so adding one takes a step or two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from reconcilers.words.model import Micros


class Mark(NamedTuple):
    """A canary's number, for the order, and its time (µs, by its node's clock; 0: unknown)."""

    number: int
    at: Micros = 0


NONE = Mark(0)
"""A mark that proves nothing."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a lane was received, and when (µs) a gap after it was noticed, None without one."""

    mark: Mark
    missing_since: Micros | None = None


class Run(NamedTuple):
    """Consecutive canaries of one lane: no acknowledged one between them is missing.

    ``first`` and ``reached`` are the first and the last; ``previous`` is the number that the first
    one names. Before the last canary comes whatever its node stored before it answered the canary
    of ``proven``, or before the time of ``proven``.
    """

    first: Mark
    previous: int
    reached: Mark
    proven: Mark

    def joined(self, later: Run) -> Run:
        """Both runs as one; ``later`` follows this one or overlaps it."""
        reached, proven = max(self.reached, later.reached), max(self.proven, later.proven)
        return Run(self.first, self.previous, reached, proven)


_FIRST = attrgetter("first.number")


def consecutive(runs: Iterable[Run]) -> Iterator[Run]:
    """Runs in any order, as runs in the order of their first numbers, consecutive ones merged."""
    whole: Run | None = None
    for run in sorted(runs, key=_FIRST):
        if whole is not None and run.previous <= whole.reached.number:
            whole = whole.joined(run)
            continue
        if whole is not None:
            yield whole
        whole = run
    if whole is not None:
        yield whole


@dataclass(frozen=True, slots=True)
class Chain:
    """The canaries received through one lane, as runs in the order of their numbers.

    The first run has no gap. Before each other run a canary is missing; before the second since
    ``missing_since`` (µs; 0: unknown). A restart keeps the first run and ``missing_since`` only.
    """

    runs: tuple[Run, ...]
    missing_since: Micros | None = None

    @classmethod
    def begun(cls, reached: Reached) -> Chain:
        """The chain of a lane that an earlier process received so far."""
        mark = reached.mark
        return cls((Run(mark, mark.number, mark, NONE),), reached.missing_since)

    @property
    def reached(self) -> Mark:
        """The canary up to which every acknowledged one was received."""
        return self.runs[0].reached

    @property
    def proven(self) -> Mark:
        """The mark of which all that was written before it was received."""
        return self.runs[0].proven

    @property
    def ahead(self) -> tuple[Run, ...]:
        """The runs received after a missing canary."""
        return self.runs[1:]

    def has(self, number: int) -> bool:
        """Whether this canary was received, or one before and one after it in the same run."""
        at = bisect_right(self.runs, number, key=_FIRST)
        return number <= max(self.reached.number, self.runs[at - 1].reached.number)

    def after(self, runs: Iterable[Run], now: Micros) -> Chain:
        """The chain with more runs, in any order, received ``now`` (µs); known ones are ignored."""
        reached = self.reached.number
        came = sorted((each for each in runs if each.reached.number > reached), key=_FIRST)
        if not came:
            return self
        at = max(bisect_right(self.runs, came[0].first.number, key=_FIRST) - 1, 0)
        whole = (*self.runs[:at], *consecutive((*self.runs[at:], *came)))
        waits = self.missing_since is not None and whole[0].reached.number == reached
        since = self.missing_since if waits else now
        return Chain(whole, since if len(whole) > 1 else None)

    def waited(self, now: Micros) -> Micros:
        """How long (µs) the first gap has existed, 0 if there is none."""
        return max(now - (self.missing_since or now), 0) if self.ahead else 0

    def waiting(self, now: Micros) -> Chain:
        """The chain with its gap counted from ``now`` (µs) if the start is unknown or later."""
        since = self.missing_since
        return self if since is None or 0 < since <= now else replace(self, missing_since=now)

    def given_up(self, now: Micros) -> Chain:
        """The chain without its first gap, whose canaries are lost."""
        heard, following, *rest = self.runs
        first = following._replace(proven=max(heard.proven, following.proven))
        return Chain((first, *rest), now if rest else None)
