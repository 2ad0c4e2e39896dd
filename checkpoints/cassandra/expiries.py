"""Expiries in Cassandra: a partition for each hour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from checkpoints.cassandra.store import Store
from checkpoints.clock import HOUR, now_micros
from checkpoints.expiries import KEPT_AFTER_DUE, Expiry
from reconcilers.model import Micros, Slot

MOST_TTL = 20 * 365 * 24 * 3600
"""Seconds: Cassandra takes no longer one."""


class CassandraExpiries:
    """`checkpoints.expiries.Expiries`."""

    def __init__(self, store: Store, clock: Callable[[], Micros] = now_micros) -> None:
        self._store = store
        self._clock = clock
        self._insert = store.prepare(
            "INSERT INTO $ks.expiries (hour, due, mailboxid, uid, messageid)"
            " VALUES (?, ?, ?, ?, ?) USING TTL ?"
        )
        self._select = store.prepare(
            "SELECT due, mailboxid, uid, messageid FROM $ks.expiries"
            " WHERE hour = ? AND due > ? AND due <= ?"
        )

    def expect(self, expiries: Iterable[Expiry]) -> None:
        """Remember them until `KEPT_AFTER_DUE` after they are due."""
        now = self._clock()
        requests = ((self._insert, (*_row(each), _kept(each.due - now))) for each in expiries)
        self._store.run("remembering what expires", requests)

    def between(self, after: Micros, until: Micros) -> Iterator[Expiry]:
        """Those due in between, hour by hour."""
        for hour in range(after // HOUR, until // HOUR + 1):
            rows = self._store.rows("reading what expires", self._select, hour, after, until)
            for due, mailboxid, uid, messageid in rows:
                yield Expiry(Slot(mailboxid, uid), messageid, due)


def _row(expiry: Expiry) -> tuple[object, ...]:
    slot = expiry.slot
    return expiry.due // HOUR, expiry.due, slot.mailboxid, slot.uid, expiry.messageid


def _kept(until_due: Micros) -> int:
    seconds = max(until_due, 0) // 1_000_000 + int(KEPT_AFTER_DUE.total_seconds())
    return min(seconds, MOST_TTL)
