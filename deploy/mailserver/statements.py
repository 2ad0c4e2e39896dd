"""Prepared statements at the consistency levels that James uses (QUORUM and SERIAL)."""

import functools

from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import NoHostAvailable, ResponseFuture, Session
from cassandra.query import PreparedStatement

SERVER_TROUBLE = (DriverException, NoHostAvailable)
"""What the driver raises when Cassandra does not answer, or answers with an error."""


class Statements:
    """Prepares each CQL text once; safe for threads."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._prepared = functools.cache(self._prepare)

    def start(
        self, cql: str, values: list[object], consistency: int = ConsistencyLevel.QUORUM
    ) -> ResponseFuture:
        """Send a statement; the answer is the `result()` of what is returned."""
        bound = self._prepared(cql).bind(values)
        bound.consistency_level = consistency
        return self._session.execute_async(bound)

    def _prepare(self, cql: str) -> PreparedStatement:
        return self._session.prepare(cql)
