"""The open findings of counters: reported once, held with a reason, ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from checkpoints.journal import Journal
from reconcilers.declared.tally import Sums
from reconcilers.rows.acceptance import NONE_ACCEPTED
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Refused
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind, Micros, Slot
from reconcilers.words.waiting import Waiting
from streaming.counters.counter_row import CounterRow
from streaming.steps.parking import Parking


@dataclass(frozen=True, slots=True)
class CorrectionLimits:
    """At most ``attempts`` of the same correction; errors above ``most`` need a person.

    ``observe``: nothing is corrected. ``again`` (µs): the wait after a refusal, and between looks
    at a held counter. ``prompt`` (µs): how long after its claim a delta may be sent, less than any
    look takes. ``at_once``: how many waiting counters are scheduled together.
    """

    attempts: int
    most: Sums
    again: Micros
    prompt: Micros
    observe: bool = False
    at_once: int = 1_000


@dataclass(slots=True, kw_only=True)
class CounterFindings:
    """The open findings of the journal. ``told`` receives each change, with the end if it ended.

    ``parking`` has, by family, the tables that refuse writes: those have one finding for all rows.
    """

    journal: Journal
    parking: dict[str, Parking]
    clock: Callable[[], Micros]
    limits: CorrectionLimits
    told: Callable[[Finding, State | None], None]
    _open: dict[tuple[str, Slot], Finding] = field(default_factory=dict)

    def recall(self) -> list[Finding]:
        """Read and return all open findings, those of whole tables included."""
        found: list[Finding] = []
        for parking in self.parking.values():
            found += self.journal.open_findings(parking.family)
            for name in parking.family.names:
                parking.recall(name)
        rows = (each for each in found if each.slot != WHOLE_TABLE)
        self._open = {(each.projection, each.slot): each for each in rows}
        return found

    def due(self) -> list[Finding]:
        """Findings of rows whose next look is due; those that wait longest first."""
        times = {key: each.next_look or 0 for key, each in self._open.items()}
        due = [key for key, at in times.items() if at <= self.clock()]
        return [self._open[key] for key in sorted(due, key=times.__getitem__)]

    def open_at(self, counter: CounterRow) -> Finding | None:
        """The open finding of a counter, as last read or written."""
        return self._open.get((counter.tally.name, counter.slot))

    def close_as_right(self, counter: CounterRow) -> None:
        """End the open finding of a counter that is right."""
        finding = self.open_at(counter)
        if finding is not None and not self.is_anothers(finding):
            self.close(finding, State.VERIFIED if finding.writes else State.HEALED)

    def gone(self, counter: CounterRow) -> None:
        """End the open finding of a counter that no longer exists, whatever was tried."""
        finding = self.open_at(counter)
        if finding is not None and not self.is_anothers(finding):
            self.close(finding, State.HEALED)

    def defer(self, counter: CounterRow, waits: Waiting) -> None:
        """Hold a counter that cannot be corrected now, unless its table is parked.

        A finding that was tried, also a stuck one, or that waits for a person is left as it is.
        """
        if self.limits.observe or self.parking[counter.family].parked(counter.tally.name):
            return
        self.read_again(counter)
        before = self.open_at(counter)
        if before is None or not (before.writes or before.kind is Kind.LARGE_CORRECTION):
            held = self.made(counter, Kind.COUNTER_DRIFT, State.HELD, f"{counter} may be wrong")
            self.hold(replace(held, waits=waits))

    def read_again(self, counter: CounterRow) -> None:
        """Read the finding of a counter again: a person may have decided."""
        name, slot = counter.tally.name, counter.slot
        found = self.journal.recall(self.parking[counter.family].family, name, [slot]).get(slot)
        if found is None:
            self._open.pop((name, slot), None)
        else:
            self._open[name, slot] = found

    def on_hold(self, family: str, tally: str, slot: Slot) -> Waiting | None:
        """The hold of a person on this counter, None without one. Raises `Retryable`."""
        holds, of = self.journal.holds, self.parking[family].family
        found = holds.standing(of, tally, [slot]).get(slot)
        return None if found is None else found.waiting

    def is_anothers(self, finding: Finding | None) -> bool:
        """Whether this process observes, and the finding is that of a stream that repairs."""
        return self.limits.observe and finding is not None and finding.state is not State.OBSERVED

    def made(self, counter: CounterRow, kind: Kind, state: State, sentence: str) -> Finding:
        """A finding of a counter, continuing its open one; not written yet."""
        before = self.open_at(counter)
        return Finding(
            family=counter.family,
            projection=counter.tally.name,
            slot=counter.slot,
            source=None,
            kind=kind,
            state=state,
            sentence=sentence,
            found_at=self.clock() if before is None else before.found_at,
            accepted=NONE_ACCEPTED if before is None else before.accepted,
        )

    def put(self, finding: Finding) -> None:
        """Write a finding, and report it."""
        self.journal.put(finding)
        self._open[finding.projection, finding.slot] = finding
        self.told(finding, None)

    def hold(self, finding: Finding) -> None:
        """Write a finding that waits; report it if more than its numbers has changed."""
        before = self._open.get((finding.projection, finding.slot))
        held = replace(finding, next_look=self.clock() + self.limits.again)
        if before is not None and _said_of(before) == _said_of(held):
            self.touch(held)
        else:
            self.put(held)

    def touch(self, finding: Finding) -> None:
        """Write a finding without reporting it."""
        self.journal.touch(finding)
        self._open[finding.projection, finding.slot] = finding

    def waits(self, counter: CounterRow) -> bool:
        """Whether a counter is left alone until the next look of its finding."""
        finding = self.open_at(counter)
        return finding is not None and finding.next_look is not None

    def close(self, finding: Finding, end: State) -> None:
        """End a finding, and report it."""
        self.journal.close(finding, end, self.clock())
        self._open.pop((finding.projection, finding.slot), None)
        self.told(finding, end)

    # --- a table that refuses

    def waits_for_table(self, counter: CounterRow) -> Micros:
        """How long (µs) a counter's table is left alone: 0 unless it refused a write lately."""
        parked = self.parking[counter.family].parked(counter.tally.name)
        if parked is None or self.clock() >= parked.tried_at + self.limits.again:
            return 0
        return self.limits.again

    def refused(self, intended: Finding, table: str, refused: Refused) -> None:
        """Park a table that refused a write: one finding for the table replaces that of the row."""
        parking = self.parking[intended.family]
        parked = parking.refuses_writes(intended.projection, table, refused)
        if parked is not None:
            self.told(parked, None)
        parking.give_up(intended)
        self._open.pop((intended.projection, intended.slot), None)

    def took_a_write(self, intended: Finding) -> None:
        """End the finding of a parked table that has taken a write."""
        freed = self.parking[intended.family].took_a_write(intended.projection)
        if freed is not None:
            self.told(freed, State.HEALED)


def _said_of(finding: Finding) -> tuple[object, ...]:
    """The parts of a finding whose change is reported; its sentence with numbers is not one."""
    return finding.state, finding.kind, finding.wait, finding.accepted
