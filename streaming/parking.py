"""A table that refuses writes is parked: one finding, however many rows wait for it (promise 7).

What was found there is looked at again, one delay later and again, until the table takes a write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from uuid import UUID

from checkpoints.journal import Journal
from reconcilers.errors import Refused
from reconcilers.family import Family
from reconcilers.finding import Finding, State
from reconcilers.model import Kind, Micros, Slot

WHOLE_TABLE = Slot(UUID(int=0), 0)
"""Where the finding of a table stands."""


@dataclass(slots=True)
class Parking:
    """The tables of one family that refuse writes. ``told`` hears of each finding and its end."""

    family: Family
    journal: Journal
    clock: Callable[[], Micros]
    _parked: dict[str, Finding] = field(default_factory=dict)

    def recall(self, projection: str) -> None:
        """Read from the journal whether it is parked."""
        found = self.journal.recall(self.family, projection, [WHOLE_TABLE]).get(WHOLE_TABLE)
        if found is None:
            self._parked.pop(projection, None)
        else:
            self._parked[projection] = found

    def parked(self, projection: str) -> Finding | None:
        """The finding of its table, if that refuses writes."""
        return self._parked.get(projection)

    def park(self, intended: Finding, table: str, refused: Refused) -> Iterator[Finding]:
        """The intent came to nothing: it is closed, and its table has a finding, if new."""
        if intended.projection not in self._parked:
            parked = replace(
                intended,
                slot=WHOLE_TABLE,
                messageid=None,
                kind=Kind.TABLE_REFUSES,
                state=State.REPORTED,
                sentence=f"table {table} refuses writes: {refused}; what is wrong there waits",
                found_at=self.clock(),
                attempts=0,
                before=None,
                writes=(),
                truth=(),
                next_look=None,
            )
            self.journal.put(parked)
            self._parked[intended.projection] = parked
            yield parked
        self.journal.close(intended, State.PARKED, self.clock())

    def freed(self, projection: str) -> Finding | None:
        """A write was taken: the table's finding, now closed, if there was one."""
        parked = self._parked.pop(projection, None)
        if parked is not None:
            self.journal.close(parked, State.HEALED, self.clock())
        return parked
