"""Raises the generation of our keyspace while a stream settles; a copy of it is kept in Kafka."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from checkpoints.bookmarks import Offsets
from checkpoints.lease import time_awake_or_asleep
from reconcilers.limits.generation import note_of
from reconcilers.words.errors import Refused, Retryable
from reconcilers.words.model import Micros
from streaming.steps.own_keyspace import OwnKeyspace

log = logging.getLogger("reconciler")

GROWS_EVERY = 60.0
"""Seconds. A restored copy of our keyspace that is older than this is noticed."""


@dataclass(slots=True)
class GrowingKeyspace:
    """Commits settled offsets with the generation beside them; the first call raises it.

    ``committed`` commits to the operator's consumer group; ``clock`` is µs, ``steady`` monotonic
    seconds. The keyspace is raised first, so that the copy outside is never ahead of it.
    """

    keyspace: OwnKeyspace
    committed: Callable[[Offsets, str], None]
    clock: Callable[[], Micros]
    steady: Callable[[], float] = time_awake_or_asleep
    _grown_at: float = float("-inf")

    def commit(self, offsets: Offsets) -> None:
        """Raise the generation if it is due, and commit. Raises `Retryable`."""
        if self.steady() > self._grown_at + GROWS_EVERY:
            try:
                self.keyspace.grow(self.clock())
                self._grown_at = self.steady()
            except (Retryable, Refused) as failed:
                log.warning("the generation of our keyspace is not raised yet: %s", failed)
        self.committed(offsets, note_of(self.keyspace.newest))
