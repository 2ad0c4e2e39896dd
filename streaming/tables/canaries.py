"""Canaries in Cassandra: one row for each node and lane, in a table whose changes are captured.

The keyspace has one copy of each row (`canary_schema`), so only the node that owns the row's token
stores it, and only that node's agent reports it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.cluster import ResponseFuture, Session
from cassandra.query import BatchStatement, BatchType, PreparedStatement

from checkpoints.cassandra.driver_errors import translated
from checkpoints.clock import MICROS_A_MILLI
from reconcilers.capture.chain import Mark
from reconcilers.capture.frontier import CANARY_TABLE, Canary, Marks, Node, node_of
from reconcilers.declared.capture import text_of
from reconcilers.words.errors import Refused, Retryable
from streaming.tables.replication import is_on_one_node, replication_of
from streaming.tables.ring import Ring

DURABLE = "SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = %s"
CAPTURED = (
    "SELECT table_name, id, cdc, WRITETIME(cdc) AS altered_at FROM system_schema.tables"
    " WHERE keyspace_name = %s"
)
INSERT = (
    "INSERT INTO $table (place, lane, number, previous, steady, idle_us, partitions, written_ms)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, toUnixTimestamp(now())) USING TIMESTAMP ?"
)
PLACES = "SELECT DISTINCT place FROM $table"
CLAIM = "INSERT INTO $table (place, lane) VALUES (?, 0)"
KEYSPACES = "SELECT keyspace_name FROM system_schema.keyspaces"
OWNER = "owner/"
"""Prefix of the place of a row without a canary, which names the James keyspace that owns them."""
NEWEST = "SELECT lane, number, written_ms FROM $table WHERE place = ?"


class Canaries:
    """Writes canaries in keyspace ``own``, and reads the newest and the marks to wait for.

    ``watched`` are the tables of ``keyspace`` whose changes are captured.
    """

    def __init__(self, session: Session, own: str, keyspace: str, watched: Collection[str]) -> None:
        self.ring = Ring(session, own)
        self._session = session
        self._own = own
        self._keyspace = keyspace
        self._watched = sorted(watched)
        self._prepared: dict[str, PreparedStatement] = {}

    def _statement(self, cql: str) -> PreparedStatement:
        """A statement, prepared at its first use: a stream also runs without the table."""
        if cql not in self._prepared:
            with translated(f"preparing the canaries of keyspace {self._own}"):
                statement = self._session.prepare(
                    cql.replace("$table", f"{self._own}.{CANARY_TABLE}")
                )
            statement.consistency_level = ConsistencyLevel.ONE
            self._prepared[cql] = statement
        return self._prepared[cql]

    def check(self) -> None:
        """Raises `Refused` if a canary is on several nodes or on none, `Retryable` without answer.

        If several agents report a canary, it proves nothing: one of them may hang.
        """
        if not self._prove():
            raise Refused(
                f"keyspace {self._own} keeps more than one copy of a row, or none in a data"
                " centre: its canaries prove nothing. `reconcile doctor --fix` names the mend"
            )

    def _prove(self) -> bool:
        nodes = self._session.cluster.metadata.all_hosts()
        replication = replication_of(self._session, self._own)
        return is_on_one_node(replication, (each.datacenter for each in nodes))

    def claim(self) -> str:
        """Claim the table for this James keyspace, unless another owns it; returns the owner.

        Of two concurrent claims the first by name wins. A dropped keyspace no longer owns it.
        Raises `Retryable`, `Refused`.
        """
        owners = self._owners()
        if not owners:
            take = self._statement(CLAIM)
            with translated(f"taking keyspace {self._own}"):
                self._session.execute(take, (f"{OWNER}{self._keyspace}",))
            owners = self._owners()
        return min(owners, default=self._keyspace)

    def _owners(self) -> list[str]:
        places = self._statement(PLACES)
        with translated(f"asking whose keyspace {self._own} is"):
            found = [row["place"] for row in self._session.execute(places)]
            living = {row["keyspace_name"] for row in self._session.execute(KEYSPACES)}
        owners = [each.removeprefix(OWNER) for each in found if each.startswith(OWNER)]
        return [each for each in owners if each in living]

    def newest(self) -> dict[Node, dict[int, Mark]]:
        """For each node that answers, the newest canary of each lane that has one."""
        found: dict[Node, dict[int, Mark]] = {}
        newest = self._statement(NEWEST)
        asked = {
            node: self._session.execute_async(newest, (place,))
            for node, place in self.ring.places().items()
        }
        for node, answer in asked.items():
            with suppress(Retryable), translated(f"reading the newest canary of node {node}"):
                found[node] = {row["lane"]: _mark(row) for row in answer.result()}
        return found

    def marks(self) -> Marks | None:
        """What to wait for until all changes written so far are released.

        None if a node has no canary or does not answer, or a table is not captured. Raises
        `Retryable`.
        """
        watched = self.watched()
        if watched is None:
            return None
        written = {node: max(lanes.values()) for node, lanes in self.newest().items() if lanes}
        numbers = {node: mark.number for node, mark in written.items()}
        return Marks(numbers, watched) if numbers.keys() == self.ring.places().keys() else None

    def watched(self) -> str | None:
        """A name of the ring and the captured tables, that of canaries included.

        None if one is not captured, or if canaries prove nothing. Raises `Retryable`.
        """
        if not self._prove():
            return None
        tables = self._captured()
        with translated(f"asking whether {self._own}.{CANARY_TABLE} is captured"):
            rows = self._session.execute(CAPTURED, (self._own,))
            canaries = [row for row in rows if row["table_name"] == CANARY_TABLE]
        if tables is None or not canaries or not all(row["cdc"] for row in canaries):
            return None
        return "/".join([self.ring.name(), *sorted(str(row["id"]) for row in (*tables, *canaries))])

    def captured(self) -> str | None:
        """A name of the watched tables as captured (`reconcilers.declared.capture`).

        It has each table's id and the time (µs) when its settings were last changed: capture that
        was turned off and on leaves no other trace. None if a table is not captured, or the
        keyspace's writes are not durable. Raises `Retryable`.
        """
        tables = self._captured()
        if tables is None:
            return None
        return text_of({row["table_name"]: f"{row['id']}@{row['altered_at']}" for row in tables})

    def _captured(self) -> list[Mapping[str, Any]] | None:
        with translated(f"asking which tables of {self._keyspace} are captured"):
            durable = self._session.execute(DURABLE, (self._keyspace,)).one()
            rows = self._session.execute(CAPTURED, (self._keyspace,))
            tables = [row for row in rows if row["table_name"] in self._watched]
        if durable is None or not durable["durable_writes"] or not tables:
            return None
        return tables if all(row["cdc"] for row in tables) else None

    def write(self, places: Mapping[str, Mapping[int, Canary]], partitions: int) -> frozenset[Node]:
        """Write canaries at each place by lane; returns the nodes that have acknowledged theirs.

        The lanes are for so many ``partitions``. The node that receives a canary dates it. Its
        number is also the write's timestamp, so that no clock decides which is the newest of a
        lane. Raises `Refused` if there is no table, or no right to it.
        """
        insert = self._statement(INSERT)
        sent: list[tuple[Node, ResponseFuture]] = []
        for place, lanes in places.items():
            batch = BatchStatement(BatchType.UNLOGGED, consistency_level=ConsistencyLevel.ONE)
            for lane, canary in lanes.items():
                told = canary.number, canary.previous, canary.steady, canary.idle, partitions
                batch.add(insert, (place, lane, *told, canary.number))
            sent.append((node_of(place), self._session.execute_async(batch)))
        return frozenset(node for node, answer in sent if _acknowledged(answer))


def _mark(row: Mapping[str, Any]) -> Mark:
    return Mark(row["number"], (row["written_ms"] or 0) * MICROS_A_MILLI)


def _acknowledged(answer: ResponseFuture) -> bool:
    try:
        with translated("writing a canary"):
            answer.result()
    except (Refused, Retryable):
        return False
    return True
