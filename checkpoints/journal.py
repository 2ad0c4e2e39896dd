"""The journal: what was found, what was done, and what must be looked at again (the port).

Implementations: `checkpoints.cassandra.CassandraJournal` (the real one) and
`tests.fakes.checkpoints.memory.MemoryJournal` (the fake); one contract test runs against both.

Rules that every implementation keeps:

1. ``put`` of a finding is durable when it returns: it is the write-ahead record of a repair.
2. One open finding per (family, projection, slot): ``put`` replaces it.
3. ``close`` removes the open finding and appends its end to the log, the log first, so that a crash
   in between leaves a finding that the next look closes again.
4. Nothing here ever fails silently: `reconcilers.words.errors.Retryable` if it may be tried again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Protocol

from checkpoints.holds import Holds
from reconcilers.declared.family import Family
from reconcilers.limits.breakers import Breaker
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Micros, Slot


class Journal(Protocol):
    """Open findings by slot, a log of their ends, and the breaker's position.

    ``holds`` are the keys that a person has put on hold.
    """

    @property
    def holds(self) -> Holds:
        """What nobody may repair until a person has released it."""

    def recall(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Finding]:
        """The open findings at these slots of this projection."""

    def put(self, finding: Finding) -> None:
        """Record an open finding, and append the new state to the log."""

    def decide(self, finding: Finding) -> None:
        """As `put`, what a person has decided: it replaces what stands, and hides nothing later.

        Whatever the clock of the person's host says: the servers' counts.
        """

    def end(self, finding: Finding, end: State) -> None:
        """As `close`, what a person has ended, now: it hides nothing later, as `decide`."""

    def touch(self, finding: Finding) -> None:
        """Replace an open finding without a line in the log (its next look moved)."""

    def close(self, finding: Finding, end: State, at: Micros) -> None:
        """Log how the finding ended and remove it from the open ones."""

    def open_findings(self, family: Family) -> Iterator[Finding]:
        """All open findings of a family, in no order."""

    def log(self, day: date) -> Iterator[dict[str, object]]:
        """The log of one day (UTC), oldest first: JSON-ready values."""

    def history(self, family: Family, projection: str, slot: Slot) -> Iterator[Finding]:
        """What the log has of one slot, newest first; lines without a key (old ones) are left out.

        It reads day by day, back to the oldest that is kept: take no more than is needed.
        """

    def breakers(self) -> dict[Breaker, str]:
        """The open breakers and why; empty when repairs may go on."""

    def open_breaker(self, breaker: Breaker, reason: str, at: Micros) -> None:
        """Open a breaker; it stays open until `close_breakers`."""

    def close_breakers(self, at: Micros) -> None:
        """Close all breakers: a person has looked."""
