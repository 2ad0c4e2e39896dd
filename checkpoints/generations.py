"""The generations of our own keyspace (the port; `reconcilers.limits.generation` has the rules)."""

from __future__ import annotations

from typing import Protocol

from reconcilers.limits.generation import Generations
from reconcilers.words.model import Micros


class GenerationStore(Protocol):
    """The generations of one installation."""

    def read(self) -> Generations:
        """The generation of each table. Raises `Retryable`, or `Refused` if a table is missing."""

    def replace(self, found: Generations, by: Micros) -> bool:
        """Set this generation (µs) in table after table, while each still has what was ``found``.

        `owner` is the last. Returns whether every table took it. A table that was truncated or
        raised meanwhile keeps its value, and so do those after it. Raises as `read` does.
        """
