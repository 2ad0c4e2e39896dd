"""What may be written in a slice: every limit's answer in, one decision out. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reconcilers.limits.ceiling import Ceiling
from reconcilers.words.model import Micros
from reconcilers.words.waiting import Waiting


@dataclass(frozen=True, slots=True)
class Answers:
    """What each limit has answered for one slice; None: it holds nothing back.

    ``repairs_breaker`` holds back all repairs of rows, ``removals_breaker`` removals alone.
    ``behind`` holds back what is right only if no event of it is still to come; ``frontier`` (µs):
    of what was written before it, everything has come. ``ceiling`` says how many repairs this
    minute has left. ``generation`` is the newest of our own keyspace that the driver has seen (µs).
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
        """What holds everything back, but for the breaker: that one counts only what may go."""
        return self.clocks or self.fast_writers or self.pauses


@dataclass(frozen=True, slots=True)
class Admission:
    """What the driver lets through for this slice; each ``…_wait`` is None if nothing waits.

    ``memory_wait`` is for repairs that are right only if no event of theirs is still to come;
    ``frontier`` (µs) is None if the stream is behind, or if it is not known. ``ceiling``: how many
    repairs may be written, if anything is. A worker that finds an older ``generation`` than this
    (µs) writes nothing.
    """

    repairs_wait: Waiting | None = None
    removals_wait: Waiting | None = None
    observe: bool = False
    memory_wait: Waiting | None = None
    frontier: Micros | None = None
    ceiling: Ceiling | None = None
    generation: Micros | None = None

    def shared(self, sizes: Sequence[int]) -> list[Admission]:
        """What is let through for each share of the slice; ``sizes`` are their suspects."""
        if self.ceiling is None:
            return [self] * len(sizes)
        return [replace(self, ceiling=each) for each in self.ceiling.shared(sizes)]


def admit(answers: Answers) -> Admission:
    """What is let through: nothing that any limit holds back. The first that does is named."""
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
