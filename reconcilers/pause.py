"""A pause of repairs that a person asked for: what it covers, until when, who and why. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from reconcilers.family import Projection
from reconcilers.model import Kind, Micros
from reconcilers.tally import Tally

ALL, REMOVALS = "all", "removals"
"""What can be paused besides one projection or one tally, by its name."""
PAUSED = "paused by"


@dataclass(frozen=True, slots=True)
class Pause:
    """Repairs of ``what`` wait ``until`` that time (µs), None: until a person resumes them."""

    what: str
    asked_at: Micros
    who: str
    reason: str
    until: Micros | None = None

    def stands(self, now: Micros) -> bool:
        """Whether its time has not come yet."""
        return self.until is None or now < self.until

    def __str__(self) -> str:
        """As it follows *held:* in a sentence; the same as long as it stands."""
        time = "" if self.until is None else f" until {_iso(self.until)}"
        return f"{PAUSED} {self.who}{time}: {self.reason}"


def covering(projection: Projection, kind: Kind) -> frozenset[str]:
    """What a pause of names this repair; a removal from an index is no loss of mail."""
    removal = kind is Kind.EXTRA_ROW and not projection.is_index
    return frozenset({ALL, projection.name, *((REMOVALS,) if removal else ())})


def covering_tally(tally: Tally) -> frozenset[str]:
    """What a pause of names a correction of this counter."""
    return frozenset({ALL, tally.name})


def why_paused(pauses: Iterable[Pause], names: Collection[str], now: Micros) -> str | None:
    """The first that stands and covers one of these, as a reason; None when nothing is paused."""
    found = (each for each in pauses if each.what in names and each.stands(now))
    first = min(found, key=lambda each: (each.asked_at, each.what), default=None)
    return None if first is None else str(first)


def waits_for_resume(sentence: str) -> bool:
    """Whether a finding with this sentence is held by a pause."""
    return f"held: {PAUSED}" in sentence


def _iso(at: Micros) -> str:
    return datetime.fromtimestamp(at // 1_000_000, UTC).isoformat(timespec="seconds")
