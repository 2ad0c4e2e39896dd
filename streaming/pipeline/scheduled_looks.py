"""Looks that are due later: after a cell has expired, at an unreadable index, at a whole group.

They wait in the table of expiries; the driver publishes those that are due.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from checkpoints.clock import HOUR, to_micros
from checkpoints.expiries import KEPT_AFTER_DUE, Expiries, Expiry
from reconcilers.declared.family import Family
from reconcilers.words.model import EXPIRED, NO_PROJECTION, Micros, Slot, Wake, look_again

EXPIRIES_KEPT: Micros = to_micros(KEPT_AFTER_DUE.total_seconds())


def looks_after_expiry(wakes: Iterable[Wake], now: Micros, delay: Micros) -> Iterator[Expiry]:
    """The later looks that cells with a TTL need, each two delays (µs) after the expiry."""
    for wake in wakes:
        expires, slot = wake.expires_at, wake.slot
        if expires is None or slot is None:
            continue
        if expires + delay > now:  # a node's clock may be behind
            yield Expiry(slot, wake.source, expires + 2 * delay)


def looks_at_groups(
    family: Family, wakes: Iterable[Wake], now: Micros, every: Micros
) -> Iterator[Expiry]:
    """The later looks at groups of which a row that collects has changed (`spread`).

    Such a look reads the whole group. James writes this row with each message that has user flags,
    so several events lead to one look.
    """
    for wake in wakes:
        slot = wake.slot
        if slot is not None and not wake.looked_again and family.is_whole_group(slot):
            yield Expiry(slot, None, spread(slot, now, every))


def spread(slot: Slot, now: Micros, every: Micros) -> Micros:
    """When (µs) a slot is looked at later: one to two periods from now, at its own phase.

    Another batch or process that schedules it again therefore schedules the same look.
    """
    phase = hash(slot) % every
    return (now - phase) // every * every + phase + 2 * every


def scheduled_wake(expiry: Expiry) -> Wake:
    """The key of a look that is due; only what differs is confirmed.

    If cells of a source have expired, the wake says so: a row that is gone by then was not lost.
    """
    wake = look_again(expiry.slot, NO_PROJECTION, expiry.source, expiry.due)
    if expiry.source is None:
        return wake
    return replace(wake, deleted_from=EXPIRED, deleted_at=expiry.due)


@dataclass(slots=True)
class ExpiredCells:
    """The driver's position in the table of expiries."""

    expiries: Expiries
    _up_to: Micros = 0

    def recall(self, recorded_at: Micros | None, now: Micros) -> None:
        """Begin an hour before the last recorded batch, or at the oldest expiry that is kept.

        A batch may have died after it took its expiries; a clock may have run ahead.
        """
        told = now - EXPIRIES_KEPT if recorded_at is None else recorded_at - HOUR
        self._up_to = min(told, now - HOUR)

    def take_due(self, now: Micros) -> Iterator[Wake]:
        """The keys whose later look became due since the last call."""
        for expiry in self.expiries.between(self._up_to, now):
            yield scheduled_wake(expiry)
        self._up_to = now  # the clock may have stepped back
