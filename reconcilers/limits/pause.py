"""A pause of repairs by a person: what it covers, until when, who requested it and why. Pure.

A pilot (`reconcilers.limits.pilot`) is a pause of everything but what it names. Two pauses are the
product's own, and are derived, not stored: `in_doubt`, while our keyspace is in doubt, and
`without_pilot`, while only a pilot may repair and none runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconcilers.limits.pilot import OwnerOf, Pilot
from reconcilers.limits.write_target import ALL, WriteTarget
from reconcilers.words.iso import iso
from reconcilers.words.model import Micros
from reconcilers.words.waiting import RULES, Wait, Waiting

PILOT = "pilot"
PAUSED, OUTSIDE = "paused by", "outside the pilot of"
OURSELVES = "the reconciler itself"
ONLY_PILOT = "the setting repair.only_pilot"


@dataclass(frozen=True, slots=True)
class Pause:
    """Repairs of ``what``, or outside the ``pilot``, wait ``until`` (µs; None: no limit)."""

    what: str
    asked_at: Micros
    who: str
    reason: str
    until: Micros | None = None
    pilot: Pilot | None = None

    def stands(self, now: Micros) -> bool:
        """Whether its time has not come yet; ``now`` in µs."""
        return self.until is None or now < self.until

    def covers(self, target: WriteTarget, owner: OwnerOf) -> bool:
        """Whether the target must not be written. Raises the errors of ``owner``."""
        if self.pilot is not None:
            return not self.pilot.takes(target, owner)
        return self.what in target.names

    @property
    def is_doubt(self) -> bool:
        """Whether it is the pause of `in_doubt`."""
        return self.who == OURSELVES and not self.asked_at

    @property
    def subject(self) -> str:
        """The repairs that wait, in words."""
        return "repairs outside the pilot" if self.pilot is not None else f"repairs of {self.what}"

    @property
    def told(self) -> str:
        """The pause as a whole sentence."""
        if self.pilot is not None:
            return f"only {self.pilot} is repaired: pilot of {self._who_and_why}"
        return f"{self.subject} are {self}"

    @property
    def _who_and_why(self) -> str:
        time = "" if self.until is None else f" until {iso(self.until)}"
        return f"{self.who}{time}: {self.reason}"

    def __str__(self) -> str:
        if self.pilot is not None:
            return f"{OUTSIDE} {self._who_and_why} (only {self.pilot})"
        return f"{PAUSED} {self._who_and_why}"

    @property
    def waiting(self) -> Waiting:
        """What the findings that it covers wait for."""
        if self.is_doubt:
            return Waiting(Wait.OWN_KEYSPACE, str(self))
        only_pilot = self.pilot is not None or self == NO_PILOT
        return Waiting(Wait.PILOT if only_pilot else Wait.PAUSE, str(self))

    @property
    def command(self) -> str:
        """The command that ends it."""
        if self.pilot is not None:
            return "reconcile pilot --end"
        if self == NO_PILOT:
            return "reconcile pilot --user NAME"
        if self.is_doubt:
            return RULES[Wait.OWN_KEYSPACE].command
        return f"reconcile resume --pause {self.what}"


def in_doubt(why: str) -> Pause:
    """A pause of everything while our keyspace is not as it was left; ``why`` says how."""
    return Pause(ALL, 0, OURSELVES, f"our keyspace is not as it was left: {why}")


NO_PILOT = Pause(ALL, 0, ONLY_PILOT, "no pilot runs")


def without_pilot(pauses: Iterable[Pause], now: Micros) -> Iterator[Pause]:
    """The pauses in force, and `NO_PILOT` if no pilot is among them."""
    standing = [each for each in pauses if each.stands(now)]
    yield from standing
    if all(each.pilot is None for each in standing):
        yield NO_PILOT


def why_paused(
    pauses: Iterable[Pause], target: WriteTarget, now: Micros, owner: OwnerOf
) -> Waiting | None:
    """What this waits for, None if no pause covers it; pilots come last: they may read owners."""
    in_order = sorted(pauses, key=lambda each: (each.pilot is not None, each.asked_at, each.what))
    found = (each for each in in_order if each.stands(now) and each.covers(target, owner))
    first = next(found, None)
    return None if first is None else first.waiting
