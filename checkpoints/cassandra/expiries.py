"""Expiries in Cassandra: a table for each family, with a partition for each minute.

If an index cannot be read for a day, millions of rows are due: too many for 24 hourly partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter

from checkpoints.cassandra.store import Store
from checkpoints.clock import HOUR, now_micros
from checkpoints.expiries import KEPT_AFTER_DUE, Expiry
from checkpoints.lineage_tables import LineageTables, marks, names
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family
from reconcilers.words.model import Micros, Slot

MINUTE: Micros = 60_000_000
MOST_TTL = 20 * 365 * 24 * 3600
"""The longest TTL that Cassandra accepts, in seconds."""


class CassandraExpiries:
    """`checkpoints.expiries.Expiries`."""

    def __init__(
        self, store: Store, clock: Callable[[], Micros] = now_micros, family: Family = MESSAGE
    ) -> None:
        self._store = store
        self._clock = clock
        tables = LineageTables(family)
        table, columns = tables.expiries, tables.expiry_columns
        self._sourced = len(columns) > len(family.key)
        self._insert = store.prepare(
            f"INSERT INTO $ks.{table} (minute, due, {names(columns)})"
            f" VALUES (?, ?, {marks(columns)}) USING TTL ?"
        )
        self._select = store.prepare(
            f"SELECT due, {names(columns)} FROM $ks.{table}"
            " WHERE minute = ? AND due > ? AND due <= ?"
        )

    def expect(self, expiries: Iterable[Expiry]) -> None:
        """Store them until `KEPT_AFTER_DUE` after they are due."""
        now = self._clock()
        requests = ((self._insert, (*self._row(each), _kept(each.due - now))) for each in expiries)
        self._store.run("remembering what expires", requests)

    def between(self, after: Micros, until: Micros) -> Iterator[Expiry]:
        """The expiries due in between, ordered; the minutes of an hour are read concurrently."""
        for hour in range(after // HOUR, until // HOUR + 1):
            first = max(after // MINUTE, hour * HOUR // MINUTE)
            last = min(until // MINUTE, (hour + 1) * HOUR // MINUTE - 1)
            minutes = range(first, last + 1)
            requests = ((self._select, (minute, after, until)) for minute in minutes)
            found = self._store.gather("reading what expires", requests)
            for due, *key in sorted(found, key=itemgetter(0)):
                source = key.pop() if self._sourced else None
                yield Expiry(Slot(*key), source, due)

    def _row(self, expiry: Expiry) -> tuple[object, ...]:
        source = (expiry.source,) if self._sourced else ()
        return expiry.due // MINUTE, expiry.due, *expiry.slot.key, *source


def _kept(until_due: Micros) -> int:
    seconds = max(until_due, 0) // 1_000_000 + int(KEPT_AFTER_DUE.total_seconds())
    return min(seconds, MOST_TTL)
