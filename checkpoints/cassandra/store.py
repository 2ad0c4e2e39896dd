"""Our keyspace behind a driver session: prepared statements, with many in flight."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, ResponseFuture, Session
from cassandra.query import BatchStatement, BatchType, PreparedStatement, tuple_factory

from checkpoints.cassandra.driver_errors import translated
from checkpoints.cassandra.replicas import (
    PARTITIONS_A_READ,
    Routed,
    by_first_replica,
    partition_of,
)
from reconcilers.declared.family import Schema
from reconcilers.words.errors import Misconfigured, Overloaded

KEYSPACE = "reconciler"
NAME = re.compile(r"[a-z][a-z0-9_]{0,47}")
CHANGE_SECONDS = 60.0

T = TypeVar("T")
Request = tuple[Any, tuple[Any, ...]]
"""A prepared statement (or a batch) and its values."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The consistency of every read and write, and of lightweight transactions."""

    each: int
    serial: int


def levels(each: str = "QUORUM", serial: str = "SERIAL") -> Levels:
    """The levels with these Cassandra names."""
    of = ConsistencyLevel.name_to_value
    return Levels(of[each], of[serial])


class Store:
    """The statements of all ports. It cannot be sent to another process.

    The caller owns and closes the session, which uses execution profiles, not the driver's legacy
    parameters. The session's own row factory and consistency stay unchanged.
    """

    def __init__(
        self,
        session: Session,
        keyspace: str = KEYSPACE,
        consistency: Levels | None = None,
        in_flight: int = 128,
        partitions_a_read: int = PARTITIONS_A_READ,
    ) -> None:
        self._consistency = consistency or levels()
        self._session = session
        self._in_flight, self._partitions_a_read = in_flight, partitions_a_read
        self.keyspace = checked_name(keyspace)
        self._profile = session.execution_profile_clone_update(
            EXEC_PROFILE_DEFAULT,
            row_factory=tuple_factory,
            consistency_level=self._consistency.each,
            serial_consistency_level=self._consistency.serial,
        )

    def prepare(self, cql: str) -> PreparedStatement:
        """Prepare a statement; ``$ks`` is the keyspace. Raises `Refused`, `Unreachable`."""
        with translated(f"preparing a statement on keyspace {self.keyspace}"):
            prepared = self._session.prepare(cql.replace("$ks", self.keyspace))
        prepared.is_idempotent = True
        return prepared

    def prepare_conditional(self, cql: str) -> PreparedStatement:
        """Prepare a lightweight transaction, which the driver must not repeat automatically."""
        prepared = self.prepare(cql)
        prepared.is_idempotent = False
        return prepared

    def prepare_serial(self, cql: str) -> PreparedStatement:
        """Prepare a read that sees the outcome of every lightweight transaction."""
        prepared = self.prepare(cql)
        prepared.consistency_level = self._consistency.serial
        return prepared

    def rows(self, doing: str, statement: PreparedStatement, *values: object) -> Iterator[Any]:
        """The rows of one statement as tuples, page by page."""
        with translated(doing):
            yield from self._send((statement, values)).result()

    def run(self, doing: str, requests: Iterable[Request]) -> None:
        """Send all, a bounded number in flight. Raises at the first failure, the rest unknown."""
        for _row in self.gather(doing, requests):
            pass

    def gather(self, doing: str, requests: Iterable[Request]) -> Iterator[Any]:
        """The rows of many statements, a bounded number of them in flight."""
        pending: deque[Any] = deque()
        with translated(doing):
            for request in requests:
                if len(pending) >= self._in_flight:
                    yield from pending.popleft().result()
                pending.append(self._send(request))
            while pending:
                yield from pending.popleft().result()

    def batch(self, requests: Iterable[Request]) -> Request:
        """Writes as one unlogged batch; those of one partition are applied as one."""
        together = BatchStatement(batch_type=BatchType.UNLOGGED)
        together.is_idempotent = True
        for statement, values in requests:
            together.add(statement, values)
        return together, ()

    def by_replica(self, groups: Iterable[Sequence[Request]], most: int) -> Iterator[Request]:
        """Groups of writes, each of one partition, in batches for the same replicas.

        A group is applied as one. A batch has at most ``most`` writes, or one larger group.
        """
        metadata = self._session.cluster.metadata
        waiting: dict[tuple[Any, ...], list[Request]] = defaultdict(list)
        for group in groups:
            bound: list[Request] = [(statement.bind(values), ()) for statement, values in group]
            replicas = tuple(metadata.get_replicas(self.keyspace, bound[0][0].routing_key))
            if not replicas:
                yield self.batch(bound)
                continue
            if waiting[replicas] and len(waiting[replicas]) + len(bound) > most:
                yield self.batch(waiting.pop(replicas))
            waiting[replicas] += bound
        yield from (self.batch(together) for together in waiting.values())

    def partitions(
        self,
        statement: PreparedStatement,
        keys: Iterable[object],
        before: Sequence[object] = (),
        after: Sequence[object] = (),
    ) -> Iterator[Request]:
        """Reads of many partitions, by a statement whose markers are the columns of their key.

        They are the values ``before``, a list of ``keys``, and the values ``after``.
        """
        asked, most = list(keys), self._partitions_a_read

        def bytes_of(key: object) -> bytes:
            return partition_of(statement, before, after)(key)

        for some, near in by_first_replica(self._session, statement, asked, most, bytes_of):
            values = (*before, list(some), *after)
            yield (
                (statement, values) if near is None else (Routed(statement, near).bind(values), ())
            )

    def tables(self) -> Schema:
        """Column types by table, as the cluster has them now; empty without the keyspace."""
        found: Schema = defaultdict(dict)
        columns = self.prepare(
            "SELECT table_name, column_name, type FROM system_schema.columns"
            " WHERE keyspace_name = ?"
        )
        doing = f"reading the schema of keyspace {self.keyspace}"
        for table, column, kind in self.rows(doing, columns, self.keyspace):
            found[table][column] = kind
        return dict(found)

    def nodes(self, data_centre: str | None) -> int:
        """The number of nodes that the driver has of this data centre, or (None) of all."""
        hosts = self._session.cluster.metadata.all_hosts()
        return sum(data_centre in (None, host.datacenter) for host in hosts)

    def change(self, statement: str) -> None:
        """Run one statement of a schema step; return when all live nodes agree on the schema.

        Every process sends it to the same node, the first by address: two nodes that create one
        table concurrently would create two. Raises `Refused` without the right. Raises `Overloaded`
        if the nodes do not agree in time; repeat it then.
        """
        doing = " ".join(statement.split())
        nodes = self._session.get_pool_state()
        first = min(nodes, key=lambda node: str(node.endpoint), default=None)
        with translated(doing):
            sent = self._session.execute_async(
                statement, timeout=CHANGE_SECONDS, execution_profile=self._profile, host=first
            )
            sent.result()
        if not sent.is_schema_agreed:
            raise Overloaded(f"the nodes do not agree on the schema yet, after: {doing}")

    def _send(self, request: Request) -> ResponseFuture:
        statement, values = request
        if isinstance(statement, BatchStatement):
            return self._session.execute_async(statement, execution_profile=self._profile)
        return self._session.execute_async(statement, values, execution_profile=self._profile)


def checked_name(keyspace: str) -> str:
    """The keyspace's name, which is inserted into statements. Raises `Misconfigured`."""
    if NAME.fullmatch(keyspace) is None:
        raise Misconfigured(
            f"keyspace name {keyspace!r}: lower-case letters, digits and underscores only,"
            " 48 characters at most"
        )
    return keyspace
