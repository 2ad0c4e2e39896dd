"""A table that refuses is parked: one finding, however many rows wait for it (promise 7).

Keys with a difference there are looked at again each delay, until the table takes a write. Keys
that changed while the table could not be read are looked at again later (`look`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from checkpoints.journal import Journal
from reconcilers.declared.family import Family
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Refused
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros
from reconcilers.words.waiting import Wait, Waiting

REFUSES = Waiting(Wait.TABLE, "its table refuses writes")


@dataclass(slots=True)
class Parking:
    """The refusing tables of one family. Methods that park or free a table return its finding."""

    family: Family
    journal: Journal
    clock: Callable[[], Micros]
    _parked: dict[str, Finding] = field(default_factory=dict)

    def recall(self, projection: str) -> None:
        """Read from the journal whether the projection's table is parked."""
        found = self.journal.recall(self.family, projection, [WHOLE_TABLE]).get(WHOLE_TABLE)
        if found is None:
            self._parked.pop(projection, None)
        else:
            self._parked[projection] = found

    def parked(self, projection: str) -> Finding | None:
        """The finding of the projection's table if it is parked; ``tried_at`` is its last try."""
        return self._parked.get(projection)

    def refuses_writes(self, projection: str, table: str, refused: Refused) -> Finding | None:
        """Park a table that refused a write. Returns its finding if new. Then call `give_up`."""
        sentence = f"table {table} refuses writes: {refused}; what is wrong there waits"
        return self._park(projection, Kind.TABLE_REFUSES, sentence)

    def refuses_reads(self, projection: str, table: str, refused: Refused) -> Finding | None:
        """Park a table that refused a read. Returns its finding if new."""
        sentence = f"table {table} cannot be read: {refused}; what changes there is looked at later"
        return self._park(projection, Kind.TABLE_UNREADABLE, sentence)

    def _park(self, projection: str, kind: Kind, sentence: str) -> Finding | None:
        now = self.clock()
        if projection in self._parked:
            self._parked[projection] = replace(self._parked[projection], tried_at=now)
            self.journal.touch(self._parked[projection])
            return None
        parked = Finding(
            family=self.family.name,
            projection=projection,
            slot=WHOLE_TABLE,
            source=None,
            kind=kind,
            state=State.REPORTED,
            sentence=sentence,
            found_at=now,
            tried_at=now,
        )
        self.journal.put(parked)
        self._parked[projection] = parked
        return parked

    def give_up(self, finding: Finding) -> Finding | None:
        """Close the finding of a row that waits for its table; the table's finding stands for all.

        A finding with a person's decision is kept: it is held, and returned.
        """
        if not finding.accepted:
            self.journal.close(finding, State.PARKED, self.clock())
            return None
        waits = finding.waits if finding.wait in {Wait.HOLD, Wait.ROW} else REFUSES
        held = replace(
            finding, state=State.HELD, waits=waits, attempts=0, writes=(), next_look=None
        )
        if held != finding:
            self.journal.put(held)
        return held

    def took_a_write(self, projection: str) -> Finding | None:
        """Close the table's finding after a write succeeded; returns it, or None."""
        return self._free(self._parked.get(projection))

    def was_read(self, projection: str) -> Finding | None:
        """Close the finding of a table that could not be read; returns it, or None."""
        parked = self._parked.get(projection)
        return self._free(parked if parked and parked.kind is Kind.TABLE_UNREADABLE else None)

    def _free(self, parked: Finding | None) -> Finding | None:
        if parked is not None:
            self._parked.pop(parked.projection)
            self.journal.close(parked, State.HEALED, self.clock())
        return parked
