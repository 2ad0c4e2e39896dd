"""Canaries in Cassandra: one row for each node and lane, in a table whose changes are captured.

The keyspace has one copy of each row (`canary_schema`), so only the node that owns the row's token
writes it, and only that node's agent can tell of it.
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
"""Begins the place of a row without a canary, which names the James's keyspace that they are of."""
NEWEST = "SELECT lane, number, written_ms FROM $table WHERE place = ?"


class Canaries:
    """Writes canaries and reads the newest, and the marks that counters wait for.

    ``own`` is their keyspace; ``watched`` are the tables of ``keyspace`` whose changes are read.
    """

    def __init__(self, session: Session, own: str, keyspace: str, watched: Collection[str]) -> None:
        self.ring = Ring(session, own)
        self._session = session
        self._own = own
        self._keyspace = keyspace
        self._watched = sorted(watched)
        self._prepared: dict[str, PreparedStatement] = {}

    def _statement(self, cql: str) -> PreparedStatement:
        """Prepared when it is first needed: a stream runs without the table of canaries, too."""
        if cql not in self._prepared:
            with translated(f"preparing the canaries of keyspace {self._own}"):
                statement = self._session.prepare(
                    cql.replace("$table", f"{self._own}.{CANARY_TABLE}")
                )
            statement.consistency_level = ConsistencyLevel.ONE
            self._prepared[cql] = statement
        return self._prepared[cql]

    def check(self) -> None:
        """Raises `Refused` where a canary is on several nodes, `Retryable` where nobody answers.

        Another node's agent would tell of it, too, while its own may hang: it proves nothing.
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
        """Take the table for this James's keyspace, unless another has it; returns whose it is.

        Of two that take it at once the first by name has it. One whose keyspace is gone has it no
        more. Raises `Retryable`, `Refused`.
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
        """Of each node that answers the newest canary in each lane; no lane before its first."""
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
        """What to wait for, so that all that was written up to now has come out.

        None where nothing can be waited for: a node has no canary yet, or does not answer, or a
        table has no capture. Raises `Retryable`.
        """
        watched = self.watched()
        if watched is None:
            return None
        written = {node: max(lanes.values()) for node, lanes in self.newest().items() if lanes}
        numbers = {node: mark.number for node, mark in written.items()}
        return Marks(numbers, watched) if numbers.keys() == self.ring.places().keys() else None

    def watched(self) -> str | None:
        """Names the ring and the captured tables, that of canaries among them.

        None where one is not captured (any more), and where canaries prove nothing. Raises
        `Retryable`.
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
        """Names the watched tables as they are captured (`reconcilers.declared.capture`).

        Each with its id, and with the time (µs) when its settings were changed last, for capture
        that was turned off and on again leaves no other trace. None where one is not captured, or
        the keyspace's writes are not durable. Raises `Retryable`.
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
        """Write at each place a canary, in lanes; returns the nodes that have acknowledged theirs.

        The lanes are for so many ``partitions``.

        The node that takes a canary dates it. Its number is the write's time, too: so no clock
        decides which row of a lane is the newest. Raises `Refused` where there is no table for
        them, or no right.
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
