"""The generations of our own keyspace (the port; `reconcilers.limits.generation` has the rules).

Implementations: `checkpoints.cassandra.CassandraGenerations` (the real one) and
`tests.fakes.checkpoints.generations.MemoryGenerations` (the fake); one contract test runs on both.
"""

from __future__ import annotations

from typing import Protocol

from reconcilers.limits.generation import Generations
from reconcilers.words.model import Micros


class GenerationStore(Protocol):
    """Of one installation."""

    def read(self) -> Generations:
        """What each table holds now. Raises `Retryable`, `Refused` where a table is missing."""

    def replace(self, found: Generations, by: Micros) -> bool:
        """Give this generation (µs) to table after table while each still holds what was ``found``.

        `owner` comes last. Returns whether every table has taken it: one that was truncated or
        raised since then keeps what it holds, and so do those after it. Raises as `read` does.
        """
