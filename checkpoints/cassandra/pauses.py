"""Pauses in Cassandra: one partition for each installation, a row for each pause."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import asdict
from uuid import UUID

from checkpoints.cassandra.store import Request, Store
from checkpoints.pauses import Resumed
from reconcilers.limits.pause import Pause
from reconcilers.limits.pilot import Pilot


class CassandraPauses:
    """`checkpoints.pauses.Pauses`. ``scope`` separates installations that share a keyspace."""

    def __init__(self, store: Store, scope: str) -> None:
        self._store = store
        self._scope = scope
        self._select = store.prepare(
            "SELECT what, asked_at, who, reason, until, pilot, ended_at, ended_by, end_reason"
            " FROM $ks.pauses WHERE scope = ?"
        )
        self._insert = store.prepare(
            "INSERT INTO $ks.pauses (scope, asked_at, what, who, reason, until, pilot)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)"
        )
        self._end = store.prepare(
            "UPDATE $ks.pauses SET ended_at = ?, ended_by = ?, end_reason = ?"
            " WHERE scope = ? AND asked_at = ? AND what = ?"
        )

    def begin(self, pause: Pause) -> None:
        """Write one row, which a quorum reads as it is written."""
        self._store.run("pausing repairs", [self._beginning(pause)])

    def replace(self, before: Collection[Pause], pause: Pause, by: Resumed) -> None:
        """Write one batch of one partition, which Cassandra applies as one mutation."""
        changes = [self._beginning(pause), *(self._ending(each, by) for each in before)]
        self._store.run("replacing a pause", [self._store.batch(changes)])

    def _beginning(self, pause: Pause) -> Request:
        pilot = None if pause.pilot is None else _as_text(pause.pilot)
        told = pause.asked_at, pause.what, pause.who, pause.reason, pause.until
        return self._insert, (self._scope, *told, pilot)

    def standing(self) -> tuple[Pause, ...]:
        """The pauses without an end, oldest first."""
        return tuple(pause for pause, ended in self._all() if ended is None)

    def end(self, pause: Pause, by: Resumed) -> None:
        """Write the end of a pause."""
        self._store.run("ending a pause", [self._ending(pause, by)])

    def _ending(self, pause: Pause, by: Resumed) -> Request:
        return self._end, (by.at, by.who, by.reason, self._scope, pause.asked_at, pause.what)

    def history(self) -> tuple[tuple[Pause, Resumed | None], ...]:
        """All pauses, oldest first, each with its end, if any."""
        return tuple(self._all())

    def _all(self) -> Iterator[tuple[Pause, Resumed | None]]:
        for row in self._store.rows("reading what is paused", self._select, self._scope):
            what, asked_at, who, reason, until, pilot, ended_at, ended_by, end_reason = row
            if what is None:  # the partition has a generation only
                continue
            named = None if pilot is None else _from_text(pilot)
            pause = Pause(what, asked_at, who or "", reason or "", until, named)
            ended = None if ended_at is None else Resumed(ended_at, ended_by, end_reason)
            yield pause, ended


def _as_text(pilot: Pilot) -> str:
    return json.dumps({what: sorted(map(str, those)) for what, those in asdict(pilot).items()})


def _from_text(text: str) -> Pilot:
    named = {what: frozenset(those) for what, those in json.loads(text).items()}
    mailboxes = frozenset(UUID(each) for each in named.pop("mailboxes"))
    return Pilot(mailboxes=mailboxes, **named)
