"""What a sweep has done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

from reconcilers.words.tokens import TokenRange


@dataclass(slots=True)
class SweepResult:
    """What a sweep has done. ``memory`` is why the truth is not all known, None if it is.

    ``whole`` says in words whether everything is known now. ``systematic`` has a line for each
    finding that stands for many rows. ``unread`` are tokens that could not be read; ``unreadable``
    counts rows that could not be looked at, by table.
    """

    rows: int = 0
    suspects: int = 0
    unread: list[tuple[str, TokenRange, str]] = field(default_factory=list)
    memory: str | None = None
    whole: str = ""
    systematic: tuple[str, ...] = ()
    unreadable: Counter[str] = field(default_factory=Counter)

    @property
    def is_all(self) -> bool:
        """Whether the truth is all known, and every row was read and looked at."""
        return self.memory is None and not self._partly

    def is_all_of(self, tables: Collection[str]) -> bool:
        """Whether the truth is all known, and every row of some tables was read and looked at."""
        return self.memory is None and self._partly.isdisjoint(tables)

    @property
    def _partly(self) -> set[str]:
        """The tables with rows that could not be read or looked at."""
        return {*(table for table, _, _ in self.unread), *+self.unreadable}
