"""What a process needs to screen mailboxes, in the counting thread or in Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reconcilers.declared.family import Family
from reconcilers.declared.tally import Tally
from reconcilers.words.model import Micros
from streaming.counters.screening import Screening
from streaming.settings import Settings


@dataclass(frozen=True, slots=True)
class ScreenJob:
    """What a worker needs to screen; ``screening`` is a function of a module, and makes it.

    A count of a whole mailbox from before ``since`` (µs) is not used. ``tasks`` run at a time.
    """

    settings: Settings
    family: Family
    tallies: Sequence[Tally]
    since: Micros
    screening: Callable[[ScreenJob], Screening]
    tasks: int = 1
