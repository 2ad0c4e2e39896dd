"""A table that refuses writes is parked: one finding, however many rows wait for it (promise 7).

What was found there is looked at again, one delay later and again, until the table takes a write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from uuid import UUID

from checkpoints.journal import Journal
from reconcilers.errors import Refused
from reconcilers.family import Family
from reconcilers.finding import Finding, State
from reconcilers.model import Kind, Micros, Slot

WHOLE_TABLE = Slot(UUID(int=0), 0)
"""Where the finding of a table stands. It is no row: nobody looks at it, or publishes it."""


@dataclass(slots=True)
class Parking:
    """The tables of one family that refuse writes. Who parks or frees one tells of its finding."""

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
        """The finding of its table, if that refuses writes; it tells when that was last tried."""
        return self._parked.get(projection)

    def park(self, intended: Finding, table: str, refused: Refused) -> Finding | None:
        """A write was refused: its table's finding, if new. `give_up` the intent then."""
        name, now = intended.projection, self.clock()
        if name in self._parked:
            self._parked[name] = replace(self._parked[name], tried_at=now)
            self.journal.touch(self._parked[name])
            return None
        parked = replace(
            intended,
            slot=WHOLE_TABLE,
            messageid=None,
            kind=Kind.TABLE_REFUSES,
            state=State.REPORTED,
            sentence=f"table {table} refuses writes: {refused}; what is wrong there waits",
            found_at=now,
            tried_at=now,
            attempts=0,
            batch="",
            before=None,
            writes=(),
            truth=(),
            next_look=None,
            accepted=False,
        )
        self.journal.put(parked)
        self._parked[name] = parked
        return parked

    def give_up(self, finding: Finding) -> Finding | None:
        """Close the finding of a row that waits for its table, which has one for all.

        What a person has accepted is not forgotten: that one stays, held, and is returned.
        """
        if not finding.accepted:
            self.journal.close(finding, State.PARKED, self.clock())
            return None
        held = replace(finding, state=State.HELD, attempts=0, writes=(), next_look=None)
        if held != finding:
            self.journal.put(held)
        return held

    def freed(self, projection: str) -> Finding | None:
        """A write was taken: the table's finding, now closed, if there was one."""
        parked = self._parked.pop(projection, None)
        if parked is not None:
            self.journal.close(parked, State.HEALED, self.clock())
        return parked
