"""A counter that is due, and what is known of it by now: its looks, and those under way."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from reconcilers.drift import Interval, Observation
from reconcilers.frontier import Marks
from reconcilers.model import Micros
from reconcilers.stillness import Stillness
from streaming.counters.counter_row import CounterRow
from streaming.counters.observe import WholeLook


@dataclass(slots=True)
class WaitingLook:
    """A look that waits until the frontier has passed its ``marks``.

    Since it was made so many ``changes`` have come out.
    """

    observation: Observation
    marks: Marks
    changes: int = 0


@dataclass(slots=True)
class PendingCounter:
    """A counter that is due at a time (µs); its looks so far, and the one that waits.

    ``still`` is since when neither side has moved, ``counting`` a whole count that goes on.
    """

    counter: CounterRow
    due: Micros
    looks: tuple[Interval, ...] = ()
    waiting: WaitingLook | None = None
    mailboxes: frozenset[UUID] = frozenset()
    in_doubt: bool = False
    still: Stillness | None = None
    counting: WholeLook | None = None
