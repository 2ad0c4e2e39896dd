"""What may be written in a slice: the answers of all limits in, one decision out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reconcilers.limits.ceiling import Ceiling
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Waiting


@dataclass(frozen=True, slots=True)
class Answers:
    """The answer of each limit for one slice. None: the limit holds nothing back.

    ``repairs_breaker`` holds back all repairs of rows, ``removals_breaker`` only removals.
    ``behind`` holds back repairs that an event still to come could make wrong. All events before
    ``frontier`` (µs) have been released. ``ceiling`` is the number of repairs left in this minute.
    ``generation`` is the newest of our keyspace that the driver has seen (µs).
    """

    observe: bool = False
    clocks: Waiting | None = None
    fast_writers: Waiting | None = None
    pauses: Waiting | None = None
    repairs_breaker: Waiting | None = None
    removals_breaker: Waiting | None = None
    behind: Waiting | None = None
    frontier: Micros | None = None
    ceiling: Ceiling | None = None
    generation: Micros | None = None

    @property
    def trouble(self) -> Waiting | None:
        """What holds everything back besides the breaker, which counts only what may be written."""
        return self.clocks or self.fast_writers or self.pauses


@dataclass(frozen=True, slots=True)
class Admission:
    """What the driver admits for this slice; each ``…_wait`` is None if nothing waits.

    ``memory_wait`` is for repairs that an event still to come could make wrong. ``frontier`` (µs)
    is None if it is unknown or the stream is behind. ``ceiling`` is the number of repairs that may
    be written. A worker that finds a ``generation`` (µs) older than this writes nothing. ``again``:
    an attempt before this one was lost.
    """

    repairs_wait: Waiting | None = None
    removals_wait: Waiting | None = None
    observe: bool = False
    memory_wait: Waiting | None = None
    frontier: Micros | None = None
    ceiling: Ceiling | None = None
    generation: Micros | None = None
    again: bool = False

    def shared(self, sizes: Sequence[int]) -> list[Admission]:
        """The admission of each share of the slice; ``sizes`` are their numbers of suspects."""
        if self.ceiling is None:
            return [self] * len(sizes)
        return [replace(self, ceiling=each) for each in self.ceiling.shared(sizes)]

    def used_up(self) -> Admission:
        """That of another attempt: the lost one may have written all that was admitted."""
        return replace(self, ceiling=self.ceiling and replace(self.ceiling, now=0), again=True)


def admit(answers: Answers) -> Admission:
    """The admission: nothing that any limit holds back. It names the first limit that does."""
    repairs_wait = answers.trouble or answers.repairs_breaker
    writes = repairs_wait is None and not answers.observe
    return Admission(
        repairs_wait=repairs_wait,
        removals_wait=answers.removals_breaker,
        observe=answers.observe,
        memory_wait=answers.behind,
        frontier=answers.frontier if answers.behind is None else None,
        ceiling=answers.ceiling if writes else None,
        generation=answers.generation,
    )
