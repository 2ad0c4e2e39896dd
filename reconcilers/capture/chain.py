"""A chain: the canaries that came through one lane, as runs without a gap. Pure.

A canary names the one before it that was acknowledged, and joins the run that this one ends. So
what waits behind a gap is one run, however much it is, and a canary costs a step or two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from reconcilers.words.model import Micros


class Mark(NamedTuple):
    """A canary's number, and when its node took it (µs, by that node's clock; 0: not known).

    Numbers tell the order and nothing else, times how old something is.
    """

    number: int
    at: Micros = 0


NONE = Mark(0)
"""Nothing is proven by a canary."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a lane was heard without a gap; it is kept, and the next process goes on with it.

    ``missing_since``: when (µs) a canary came after one that is missing, None where nothing is
    missing. It counts on in the next process.
    """

    mark: Mark
    missing_since: Micros | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Canaries of one lane that follow each other: no acknowledged one between them is missing.

    ``first`` and ``reached`` are the first and the last; ``previous`` is the number that the first
    one names. ``proven``: what was written before the answer to the canary of this number, and
    before this time, lies before the run's last one.
    """

    first: Mark
    previous: int
    reached: Mark
    proven: Mark

    def joined(self, later: Run) -> Run:
        """Both as one; ``later`` follows this one or is a part of it."""
        reached, proven = max(self.reached, later.reached), max(self.proven, later.proven)
        return Run(self.first, self.previous, reached, proven)


_FIRST = attrgetter("first.number")


def joined(runs: Iterable[Run]) -> Iterator[Run]:
    """Runs in the order of their first numbers; those that follow each other become one."""
    whole: Run | None = None
    for run in runs:
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
    """The canaries that came through one lane, as runs in the order of their numbers.

    The first run came without a gap. Before each other one a canary is missing; before the second
    since ``missing_since`` (µs; 0: not known). However many canaries wait behind a gap, they are
    one run. After a restart the runs behind the first are not known, but ``missing_since`` is.
    """

    runs: tuple[Run, ...]
    missing_since: Micros | None = None

    @classmethod
    def begun(cls, reached: Reached) -> Chain:
        """A lane that was heard so far before."""
        mark = reached.mark
        return cls((Run(mark, mark.number, mark, NONE),), reached.missing_since)

    @property
    def reached(self) -> Mark:
        """Every acknowledged canary up to this one has come."""
        return self.runs[0].reached

    @property
    def proven(self) -> Mark:
        """What was written before the answer to this canary, and before this time, has come."""
        return self.runs[0].proven

    @property
    def ahead(self) -> tuple[Run, ...]:
        """What came while an earlier canary is missing."""
        return self.runs[1:]

    def has(self, number: int) -> bool:
        """Whether the canary of this number was heard, or one before it and one after it were."""
        at = bisect_right(self.runs, number, key=_FIRST)
        return number <= max(self.reached.number, self.runs[at - 1].reached.number)

    def after(self, runs: Iterable[Run], now: Micros) -> Chain:
        """With these, in any order, heard now (µs); what was heard before changes nothing."""
        reached = self.reached.number
        came = sorted((each for each in runs if each.reached.number > reached), key=_FIRST)
        if not came:
            return self
        at = max(bisect_right(self.runs, came[0].first.number, key=_FIRST) - 1, 0)
        later = sorted((*self.runs[at:], *came), key=_FIRST)
        whole = (*self.runs[:at], *joined(later))
        waits = self.missing_since is not None and whole[0].reached.number == reached
        since = self.missing_since if waits else now
        return Chain(whole, since if len(whole) > 1 else None)

    def waited(self, now: Micros) -> Micros:
        """How long (µs) the first gap has been there, 0 where there is none."""
        return max(now - (self.missing_since or now), 0) if self.ahead else 0

    def waiting(self, now: Micros) -> Chain:
        """Its time counts from now (µs) on, if it is not known or our clock went back since."""
        since = self.missing_since
        return self if since is None or 0 < since <= now else replace(self, missing_since=now)

    def given_up(self, now: Micros) -> Chain:
        """Going on after what is missing first, which is lost."""
        heard, following, *rest = self.runs
        first = replace(following, proven=max(heard.proven, following.proven))
        return Chain((first, *rest), now if rest else None)
