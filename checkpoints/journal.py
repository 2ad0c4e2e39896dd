"""The journal: what was found, what was done, and what must be looked at again (the port).

Every implementation follows these rules:

1. A finding is durable when ``put`` returns: it is the write-ahead record of a repair.
2. There is one open finding for each (family, projection, slot); ``put`` replaces it.
3. ``close`` appends the finding's end to the log, then removes the open finding. After a crash in
   between, the next look closes the finding again.
4. No failure is silent: `reconcilers.words.errors.Retryable` if the call may be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Protocol

from checkpoints.holds import Holds
from reconcilers.declared.family import Family
from reconcilers.limits.breakers import Breaker, Opening
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Micros, Slot


class Journal(Protocol):
    """Open findings by slot, a log of their states, and the breakers.

    What a person has accepted is read with a finding. `put`, `decide` and `touch` do not write it.
    """

    @property
    def holds(self) -> Holds:
        """The keys that a person has put on hold; nothing may be repaired there."""

    def recall(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Finding]:
        """The open findings at these slots of this projection."""

    def put(self, finding: Finding) -> None:
        """Store an open finding, and append its state to the log."""

    def decide(self, finding: Finding) -> None:
        """Store a person's decision: like `put`, by the servers' clock, hiding nothing later."""

    def accept(self, finding: Finding) -> bool:
        """Add what a person has accepted and the next look to the open finding; log it.

        Nothing else writes ``accepted``, so no look that is in progress can lose it. It ends with
        the finding. Returns False, and does nothing, if the finding has ended.
        """

    def end(self, finding: Finding, end: State) -> None:
        """Close a finding for a person, now: like `close`, but by the servers' clock."""

    def touch(self, finding: Finding) -> None:
        """Replace an open finding without a log line (its next look moved)."""

    def close(self, finding: Finding, end: State, at: Micros) -> None:
        """Log how the finding ended, and remove it from the open ones."""

    def open_findings(self, family: Family) -> Iterator[Finding]:
        """All open findings of a family, unordered."""

    def log(self, day: date) -> Iterator[dict[str, object]]:
        """The log of one day (UTC), oldest first, as JSON-ready values."""

    def history(
        self, family: Family, projection: str, slot: Slot, since: Micros = 0
    ) -> Iterator[Finding]:
        """The log of one slot, newest first, read day by day; lines without a key are left out.

        ``since`` (µs): only its day, the day before, and later ones are read.
        """

    def breakers(self) -> dict[Breaker, str]:
        """The open breakers with their reasons; empty while repairs may continue."""

    def open_breaker(self, breaker: Breaker, reason: str, at: Micros) -> None:
        """Open a breaker at a time (µs); it stays open until `close_breakers`."""

    def openings(self) -> Sequence[Opening]:
        """The openings that nobody has closed, oldest first by breaker."""

    def all_openings(self) -> Sequence[tuple[Opening, Micros | None]]:
        """Every opening, oldest first by breaker, with the time (µs) at which it was closed."""

    def close_breakers(self, at: Micros, openings: Iterable[Opening] | None = None) -> None:
        """Close these openings (all that stand) at a time (µs), for a person who has looked."""
