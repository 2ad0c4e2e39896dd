"""Tallies with two tables: the stream observes which of them James writes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from reconcilers.counters.live_table import Choice, TableUse, choose, choose_again, shapes_of
from reconcilers.declared.family import Family
from reconcilers.declared.tally import Tally
from reconcilers.limits.write_target import WriteTarget
from reconcilers.words.errors import ReadFailed, Refused
from reconcilers.words.waiting import Wait, Waiting

log = logging.getLogger("reconciler")

READ_EVERY = 10.0
"""Seconds between two samples of the tables, while counters are due."""
Read = Callable[[Sequence[Tally]], Sequence[TableUse]]
Why = Callable[[WriteTarget], Waiting | None]


@dataclass(slots=True)
class LiveTable:
    """Which of these ``shapes`` James writes; ``clock`` is monotonic (s).

    A read that fails decides nothing: the next one starts from the decision before it.
    """

    shapes: tuple[Tally, ...]
    read: Read
    clock: Callable[[], float]
    _read_at: float = float("-inf")
    _before: Sequence[TableUse] = ()
    _decided: Choice | None = None
    _choice: Choice | None = None

    def choice(self) -> Choice:
        """The choice of the newest sample, at most `READ_EVERY` old. Raises `Retryable`."""
        if self._choice is None or self.clock() >= self._read_at + READ_EVERY:
            made = self._read()
            if self._choice is None or made.kept != self._choice.kept:
                self._tell(made)
            self._choice, self._read_at = made, self.clock()
        return self._choice

    def _read(self) -> Choice:
        try:
            now = self.read(self.shapes)
        except (Refused, ReadFailed) as refused:  # other tallies go on
            return Choice(None, str(refused))
        before, self._before = self._before or now, now
        last = self._decided if self._decided and self._decided.kept else choose(now)
        self._decided = choose_again(last, before, now)
        return self._decided

    def _tell(self, made: Choice) -> None:
        name, tables = self.shapes[0].name, " and ".join(each.table for each in self.shapes)
        if made.kept is None:
            log.error(
                "%s is not kept: %s exist, and %s; set tally.quota_table", name, tables, made.why
            )
        else:
            log.info("%s is kept in %s: %s", name, made.kept.table, made.why)


@dataclass(frozen=True, slots=True)
class LiveTables:
    """The live table of each tally with two tables, by the tally's name."""

    tables: Mapping[str, LiveTable]

    @classmethod
    def of(cls, families: Iterable[Family], read: Read, clock: Callable[[], float]) -> Self:
        """The live tables of families as a cluster has them."""
        shapes = {name: some for each in families for name, some in shapes_of(each).items()}
        return cls({name: LiveTable(some, read, clock) for name, some in shapes.items()})

    def kept(self) -> tuple[Tally | None, ...]:
        """For each tally with two tables, the one that is kept, None while that is unclear."""
        return tuple(each.choice().kept for each in self.tables.values())

    def is_kept(self, tally: Tally) -> bool:
        """Whether James writes the table of this shape."""
        live = self.tables.get(tally.name)
        return live is None or live.choice().kept == tally

    def unless_other(self, pauses: Why) -> Why:
        """A function that returns why a write waits: a pause, or James may write another table."""

        def why(target: WriteTarget) -> Waiting | None:
            paused, live = pauses(target), self.tables.get(target.system)
            if paused is not None or live is None:
                return paused
            choice = live.choice()
            if choice.kept is not None and choice.kept.table == target.table:
                return None
            told = f"James may not write {target.table} any more: {choice.why}"
            return Waiting(Wait.OTHER_TABLE, told)

        return why
