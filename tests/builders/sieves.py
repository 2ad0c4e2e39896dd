"""A sieve over a journal in memory."""

from __future__ import annotations

from collections.abc import Callable

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, keeping
from reconcilers.words.model import Micros
from streaming.again.sieve import Sieve, SuspectSink
from streaming.again.together import PastTogether, Systematic, Told
from tests.fakes.checkpoints.lost_rows import MemoryLostRows
from tests.fakes.checkpoints.memory import MemoryJournal

OF_MESSAGES = keeping(MESSAGE, ["messages"])
FEW = 3


def sieve(
    sink: SuspectSink,
    journal: MemoryJournal,
    clock: Callable[[], Micros],
    lost_rows: MemoryLostRows | None = None,
    family: Family = OF_MESSAGES,
) -> Sieve:
    """Of more than `FEW` rows of the past one finding tells."""
    told = Told(family, journal, clock)
    past = PastTogether(told, lost_rows or MemoryLostRows(), FEW)
    return Sieve(family, sink, Systematic(told), past)
