"""Step 1 for families that seldom change: the ends of topics wait for the delay, without Spark.

A record that lies before the end of its partition has been in Kafka since then at the latest. Once
an end has waited for the delay, so have all records before it. All families share one list of ends,
so that they look at the same ranges.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from checkpoints.bookmarks import Offsets, flat
from checkpoints.clock import now_micros
from reconcilers.words.model import Micros
from streaming.pipeline.slices import Closed


@dataclass(frozen=True, slots=True)
class PartitionEnds:
    """The ends of topics, asked for at ``asked_at`` (µs), which is ``asked``, and ``known`` then.

    The latter two are monotonic seconds.
    """

    asked_at: Micros
    asked: float
    known: float
    offsets: Offsets

    def windows(self) -> list[Closed]:
        """All before these ends, as windows that have closed."""
        places = [Closed(self.asked_at, place, end) for place, end in flat(self.offsets).items()]
        return [*places, Closed(self.asked_at)]


@dataclass(slots=True)
class WaitingEnds:
    """Reads the ends each ``every`` seconds and keeps them until they have waited for ``delay``."""

    read: Callable[[], Offsets]
    delay: float
    every: float
    clock: Callable[[], float] = time.monotonic
    _asked: float = float("-inf")
    _known: deque[PartitionEnds] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    def waited(self, since: float) -> PartitionEnds | None:
        """The newest ends that have waited, of those asked for after ``since`` (monotonic seconds).

        Raises `Retryable` if Kafka does not answer, to one caller each time it is asked.
        """
        with self._lock:
            if self.clock() - self._asked >= self.every:
                self._asked, asked_at = self.clock(), now_micros()
                offsets = self.read()
                self._known.append(PartitionEnds(asked_at, self._asked, self.clock(), offsets))
            full = [each for each in self._known if self.clock() - each.known >= self.delay]
            while full and self._known[0] is not full[-1]:
                self._known.popleft()
            return full[-1] if full and full[-1].asked > since else None
