"""Looks that are due at a later time: when a cell has expired, or an index may be readable again.

They wait in the table of expiries; the driver publishes those that are due.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from checkpoints.expiries import Expiry
from reconcilers.model import NO_PROJECTION, Micros, Slot, Wake


def looks_after_expiry(wakes: Iterable[Wake], now: Micros, delay: Micros) -> Iterator[Expiry]:
    """The later looks that cells with a TTL need, each two delays (µs) after the expiry."""
    for wake in wakes:
        expires, mailboxid, uid = wake.expires_at, wake.mailboxid, wake.uid
        if expires is None or mailboxid is None or uid is None:
            continue
        if expires + delay > now:  # a node's clock may be behind ours
            yield Expiry(Slot(mailboxid, uid), wake.messageid, expires + 2 * delay)


def spread(slot: Slot, now: Micros, every: Micros) -> Micros:
    """When a slot is looked at later: one to two periods from now, at its own time of each (µs).

    So whoever asks for it again, in another batch or another process, asks for the same look.
    """
    phase = hash(slot) % every
    return (now - phase) // every * every + phase + 2 * every


def scheduled_wake(expiry: Expiry) -> Wake:
    """The key of a look that is due; only what differs is confirmed."""
    return Wake(
        mailboxid=expiry.slot.mailboxid,
        messageid=expiry.messageid,
        uid=expiry.slot.uid,
        oldest=expiry.due,
        looked_again=True,
        projection=NO_PROJECTION,
    )
