"""The fake of `checkpoints.generations`, in this process's memory."""

from __future__ import annotations

from reconcilers.limits.generation import GENERATIONS, GUARDS, OWNER, Generations
from reconcilers.words.model import Micros


class MemoryGenerations:
    """`checkpoints.generations.GenerationStore` in a dictionary; ``held`` is by table."""

    def __init__(self, begun: Micros | None = None) -> None:
        self.held: dict[str, Micros | None] = dict.fromkeys(GENERATIONS, begun)

    def read(self) -> Generations:
        return dict(self.held)

    def replace(self, found: Generations, by: Micros) -> bool:
        """Table by table, until one holds something else."""
        for table in (*GUARDS, OWNER):
            if self.held[table] != found[table]:
                return False
            self.held[table] = by
        return True
