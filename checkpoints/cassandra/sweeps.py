"""Sweeps in Cassandra: a partition for each installation, and one for the ranges of each sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

from checkpoints.cassandra.store import Store
from checkpoints.sweeps import RangeKey, SweepRecord, SweptRange
from reconcilers.words.model import Micros


class CassandraSweeps:
    """`checkpoints.sweeps.Sweeps`. ``scope`` separates installations that share a keyspace."""

    def __init__(self, store: Store, scope: str) -> None:
        self._store, self._scope = store, scope
        self._select = store.prepare(
            "SELECT began_at, who, reason, systems, ranges, truth_swept_at, ended_at, outcome"
            " FROM $ks.sweeps WHERE scope = ?"
        )
        self._insert = store.prepare(
            "INSERT INTO $ks.sweeps (scope, began_at, who, reason, systems, ranges)"
            " VALUES (?, ?, ?, ?, ?, ?)"
        )
        self._truth = store.prepare(
            "UPDATE $ks.sweeps SET truth_swept_at = ? WHERE scope = ? AND began_at = ?"
        )
        self._end = store.prepare(
            "UPDATE $ks.sweeps SET ended_at = ?, outcome = ? WHERE scope = ? AND began_at = ?"
        )
        self._range = store.prepare(
            "INSERT INTO $ks.swept_ranges (scope, began_at, table_name, number, rows, suspects,"
            " ranges) VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        self._ranges = store.prepare(
            "SELECT table_name, number, rows, suspects, ranges FROM $ks.swept_ranges"
            " WHERE scope = ? AND began_at = ?"
        )
        self._forget = store.prepare(
            "DELETE FROM $ks.swept_ranges WHERE scope = ? AND began_at = ?"
        )

    def begin(self, sweep: SweepRecord) -> None:
        """Write one row."""
        told = sweep.began_at, sweep.who, sweep.reason, ",".join(sweep.systems), sweep.ranges
        self._store.run("beginning a sweep", [(self._insert, (self._scope, *told))])

    def all(self) -> tuple[SweepRecord, ...]:
        """All sweeps, newest first, as the table orders them."""
        rows = self._store.rows("reading sweeps", self._select, self._scope)
        return tuple(_record(*row) for row in rows)

    def swept(self, sweep: SweepRecord, ranges: Mapping[RangeKey, SweptRange]) -> None:
        """Write a row for each of the adjacent ranges that were read together."""
        requests = (
            (self._range, (self._scope, sweep.began_at, *place, *astuple(each)))
            for place, each in ranges.items()
        )
        self._store.run("recording swept ranges", requests)

    def ranges(self, sweep: SweepRecord) -> dict[RangeKey, SweptRange]:
        """The finished ranges of a sweep, from one partition."""
        doing, sweep_key = "reading swept ranges", (self._scope, sweep.began_at)
        return {
            (table, number): SweptRange(*counts)
            for table, number, *counts in self._store.rows(doing, self._ranges, *sweep_key)
        }

    def truth_swept(self, sweep: SweepRecord, at: Micros) -> None:
        """Write the time (µs) at which all of the truth had been read."""
        values = (at, self._scope, sweep.began_at)
        self._store.run("recording a sweep of the truth", [(self._truth, values)])

    def end(self, sweep: SweepRecord, at: Micros, outcome: str) -> None:
        """Write the end, then remove the ranges, which an ended sweep does not need."""
        values = (at, outcome, self._scope, sweep.began_at)
        self._store.run("ending a sweep", [(self._end, values)])
        self._store.run("ending a sweep", [(self._forget, (self._scope, sweep.began_at))])


def _record(began_at: Micros, who: str, reason: str, systems: str, *rest: Any) -> SweepRecord:
    ranges, truth_swept_at, ended_at, outcome = rest
    names = tuple(filter(None, (systems or "").split(",")))
    ends = truth_swept_at, ended_at, outcome or ""
    return SweepRecord(began_at, who or "", reason or "", names, ranges, *ends)
