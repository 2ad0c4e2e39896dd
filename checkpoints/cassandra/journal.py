"""The journal in Cassandra. The findings of a family are spread over `BUCKETS` partitions."""

from __future__ import annotations

import heapq
import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from checkpoints import codec
from checkpoints.cassandra.buckets import BUCKETS, bucket_of, by_bucket
from checkpoints.cassandra.finding_rows import COLUMNS, NAMES, findings_of, place_of, values_of
from checkpoints.cassandra.holds import CassandraHolds
from checkpoints.cassandra.store import Request, Store
from checkpoints.clock import now_micros
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.family import Family
from reconcilers.limits.breakers import Breaker, Opening, first_reasons
from reconcilers.rows.finding import Finding, State
from reconcilers.rows.memory import UUID_EPOCH_100NS
from reconcilers.words.key import text_of
from reconcilers.words.model import Micros, Slot

DAY = 86_400
UNDO_PERIOD = timedelta(days=90)


class CassandraJournal:
    """`checkpoints.journal.Journal` on the tables findings, finding_log and breakers.

    ``families`` declare the keys of findings. ``scope`` separates the breakers of installations
    that share a keyspace. ``log_kept`` is how long log lines, and with them undo, are available.
    Two writers of one slot must be further apart than the difference of their clocks: the later
    clock wins.
    """

    def __init__(
        self,
        store: Store,
        scope: str = "stream",
        log_kept: timedelta = UNDO_PERIOD,
        clock: Callable[[], Micros] = now_micros,
        families: Iterable[Family] = FAMILIES,
    ) -> None:
        self._families = {each.name: each for each in families}
        self._store = store
        self._scope = scope
        self._log_kept = int(log_kept.total_seconds())
        self._clock = clock
        self.holds = CassandraHolds(store)
        self._prepare_findings(store)
        self._prepare_breakers(store)

    def _prepare_findings(self, store: Store) -> None:
        here = "FROM $ks.findings WHERE family = ? AND bucket = ?"
        every = f"{COLUMNS}, accepted"
        self._recall = store.prepare(f"SELECT {every} {here} AND projection = ? AND key IN ?")
        self._list = store.prepare(f"SELECT {every} {here} AND projection = ?")
        insert = (
            f"INSERT INTO $ks.findings (family, bucket, {COLUMNS})"
            f" VALUES ({', '.join('?' * (2 + len(NAMES)))})"
        )
        self._open, self._decided = map(store.prepare, (insert, f"{insert} USING TIMESTAMP ?"))
        self._now = store.prepare("SELECT toUnixTimestamp(now()) FROM system.local")
        this = f"{here} AND projection = ? AND key = ?"
        self._at = store.prepare(f"SELECT WRITETIME(state), found_at {this}")
        self._accept = store.prepare(
            "UPDATE $ks.findings USING TIMESTAMP ? SET accepted = accepted + ?, next_look = ?"
            f" {this.removeprefix('FROM $ks.findings ')}"
        )
        self._forget = store.prepare(f"DELETE {this}")
        self._forget_then = store.prepare(
            f"DELETE {this.replace(' WHERE', ' USING TIMESTAMP ? WHERE')}"
        )
        self._append = store.prepare(
            "INSERT INTO $ks.finding_log"
            " (day, bucket, at, family, projection, key, kind, state, finding)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) USING TTL ?"
        )
        of_a_day = "SELECT finding FROM $ks.finding_log WHERE day = ? AND bucket = ?"
        self._read_log = store.prepare(of_a_day)
        self._read_history = store.prepare(
            f"{of_a_day} AND family = ? AND projection = ? AND key = ?"
            " ORDER BY at DESC ALLOW FILTERING"
        )

    def _prepare_breakers(self, store: Store) -> None:
        self._read_breakers = store.prepare(
            "SELECT breaker, opened_at, reason, closed_at FROM $ks.breakers WHERE scope = ?"
        )
        self._open_breaker = store.prepare(
            "UPDATE $ks.breakers SET reason = ? WHERE scope = ? AND breaker = ? AND opened_at = ?"
        )
        self._close_breaker = store.prepare(
            "UPDATE $ks.breakers SET closed_at = ?"
            " WHERE scope = ? AND breaker = ? AND opened_at = ?"
        )

    def recall(self, family: Family, projection: str, slots: Iterable[Slot]) -> dict[Slot, Finding]:
        """The open findings at these slots, by a few reads for many slots."""
        requests = (
            (self._recall, (family.name, bucket, projection, keys))
            for bucket, keys in by_bucket(slots)
        )
        rows = self._store.gather("recalling open findings", requests)
        return {finding.slot: finding for finding in findings_of(rows, family)}

    def put(self, finding: Finding) -> None:
        """Store an open finding and log its state; both are durable when this returns."""
        line = self._log_request(finding, finding.state, self._clock())
        self._store.run("recording a finding", [self._open_request(finding), line])

    def decide(self, finding: Finding) -> None:
        """Store a decision, stamped by a server's clock, and newer than the current finding."""
        stamp = max(self._server_time(), self._written(finding) + 1)
        _, values = self._open_request(finding)
        line = self._log_request(finding, finding.state, self._clock())
        self._store.run("recording a decision", [(self._decided, (*values, stamp)), line])

    def accept(self, finding: Finding) -> bool:
        """Add what is accepted, right after the last write of the finding: an end hides it."""
        rows = self._store.rows("reading a finding", self._at, *place_of(finding))
        written, found_at = next(rows, (None, None))
        if written is None or found_at != finding.found_at:
            return False
        given = {codec.text_of(codec.accepted_to_json(each)) for each in finding.accepted}
        values = (written + 1, given, finding.next_look, *place_of(finding))
        line = self._log_request(finding, finding.state, self._clock())
        self._store.run("recording a decision", [(self._accept, values), line])
        return True

    def end(self, finding: Finding, end: State) -> None:
        """Log and remove a finding for a person, both stamped by a server's clock."""
        at, written = self._server_time(), self._written(finding)
        self._store.run("logging a decision", [self._log_request(finding, end, at)])
        place = place_of(finding)
        stamp = max(at, written + 1)  # what was accepted is hidden too
        self._store.run("closing a finding", [(self._forget_then, (stamp, *place))])

    def _server_time(self) -> Micros:
        (server,) = next(self._store.rows("asking a server for the time", self._now))
        return int(server) * 1000

    def _written(self, finding: Finding) -> Micros:
        rows = self._store.rows("reading a finding", self._at, *place_of(finding))
        return max((at or 0 for at, _ in rows), default=0)

    def touch(self, finding: Finding) -> None:
        """Replace an open finding without a log line."""
        self._store.run("recording a finding", [self._open_request(finding)])

    def close(self, finding: Finding, end: State, at: Micros) -> None:
        """Log how the finding ended, then remove it."""
        self._store.run("logging a finding's end", [self._log_request(finding, end, at)])
        self._store.run("closing a finding", [(self._forget, place_of(finding))])

    def open_findings(self, family: Family) -> Iterator[Finding]:
        """All open findings of a family's projections and tallies, page by page."""
        for name in family.names:
            for bucket in range(BUCKETS):
                place = (family.name, bucket, name)
                rows = self._store.rows("listing open findings", self._list, *place)
                yield from findings_of(rows, family)

    def log(self, day: date) -> Iterator[dict[str, object]]:
        """The log of one day (UTC), oldest first; the partitions are merged while they are read."""
        buckets = (self._log_of(day, bucket) for bucket in range(BUCKETS))
        return heapq.merge(*buckets, key=lambda line: line["at"])

    def history(
        self, family: Family, projection: str, slot: Slot, since: Micros = 0
    ) -> Iterator[Finding]:
        """The log of a slot, newest first, a read a day from tomorrow on: clocks may be ahead.

        The day before ``since`` (µs) is read too, as clocks may also be behind.
        """
        key, today, first = text_of(slot), _day_of(self._clock()), _day_of(since)
        where = (bucket_of(key), family.name, projection, key)
        for days in range(-1, min(self._log_kept // DAY, (today - first).days + 1) + 1):
            day = today - timedelta(days=days)
            for (text,) in self._store.rows("reading the log", self._read_history, day, *where):
                yield codec.finding_from_json(json.loads(text), family)

    def _log_of(self, day: date, bucket: int) -> Iterator[codec.Json]:
        for (text,) in self._store.rows("reading the log", self._read_log, day, bucket):
            yield json.loads(text)

    def _open_request(self, finding: Finding) -> Request:
        return self._open, values_of(finding, self._families[finding.family])

    def _log_request(self, finding: Finding, state: State, at: Micros) -> Request:
        key, family = text_of(finding.slot), self._families[finding.family]
        values = (
            _day_of(at),
            bucket_of(key),
            _time_uuid(at),
            finding.family,
            finding.projection,
            key,
            str(finding.kind),
            str(state),
            codec.text_of(codec.log_line(finding, family, state, at)),
            self._log_kept,
        )
        return self._append, values

    def breakers(self) -> dict[Breaker, str]:
        """The open breakers, each with the reason of its first opening."""
        return first_reasons(self.openings())

    def open_breaker(self, breaker: Breaker, reason: str, at: Micros) -> None:
        """Open a breaker. An opening that a person has closed stays closed."""
        values = (reason, self._scope, str(breaker), at)
        self._store.run("opening a breaker", [(self._open_breaker, values)])

    def close_breakers(self, at: Micros, openings: Iterable[Opening] | None = None) -> None:
        """Close these openings, or all that stand."""
        closed = self.openings() if openings is None else openings
        values = [(at, self._scope, str(each.breaker), each.at) for each in closed]
        statements = [(self._close_breaker, each) for each in values]
        self._store.run("closing the breakers", statements)

    def openings(self) -> list[Opening]:
        """The openings that stand, oldest first by breaker."""
        return [each for each, closed_at in self.all_openings() if closed_at is None]

    def all_openings(self) -> list[tuple[Opening, Micros | None]]:
        """Every opening, oldest first by breaker, with the time (µs) at which it was closed."""
        rows = self._store.rows("reading the breakers", self._read_breakers, self._scope)
        return [
            (Opening(Breaker(name), opened_at, reason), closed_at)
            for name, opened_at, reason, closed_at in rows
            if name is not None  # a row may have a generation only
        ]


def _day_of(at: Micros) -> date:
    return datetime.fromtimestamp(at // 1_000_000, UTC).date()


def _time_uuid(at: Micros) -> UUID:
    """A unique time-based UUID of this time (µs)."""
    ticks = at * 10 + UUID_EPOCH_100NS
    return UUID(
        fields=(
            ticks & 0xFFFFFFFF,
            (ticks >> 32) & 0xFFFF,
            (ticks >> 48) & 0x0FFF,
            secrets.randbits(6),
            secrets.randbits(8),
            secrets.randbits(48) | 1 << 40,
        ),
        version=1,
    )
