"""Statements on James's tables: prepared once a session, and reads with several in flight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from checkpoints.cassandra.replicas import Routed, by_first_replica, partition_of
from streaming.tables.dates import bind_dates_as_numbers

READS_IN_FLIGHT = 8


class StatementCache:
    """The statements of one session. Not shared between threads."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[str, Any] = {}

    def prepared(self, cql: str, **options: int) -> Any:
        """The statement, prepared at the first call with these attributes of the driver's."""
        if cql not in self._known:
            with translated("preparing a statement on James's tables"):
                statement = self._session.prepare(cql)
            bind_dates_as_numbers(statement)
            for name, value in options.items():
                setattr(statement, name, value)
            self._known[cql] = statement
        return self._known[cql]

    def rows(self, statement: Any, values: tuple[object, ...]) -> Iterator[dict[str, Any]]:
        """The rows of one execution; pages are read as the caller iterates."""
        with translated("reading James's tables"):
            yield from self._session.execute(statement, values)

    def each(
        self, statement: Any, arguments: Iterable[tuple[object, ...]]
    ) -> Iterator[list[dict[str, Any]]]:
        """The rows of each execution, in order; up to `READS_IN_FLIGHT` are in flight."""
        return self._answers((statement, values) for values in arguments)

    def partitions(
        self, statement: Any, keys: Sequence[object], most: int, after: Sequence[object] = ()
    ) -> Iterator[list[dict[str, Any]]]:
        """The rows of many partitions, by a statement with a list of up to ``most`` keys.

        The values ``after`` are those of its other markers: columns after the partition's key.
        """

        def bytes_of(key: object) -> bytes:
            return partition_of(statement, (), ())(key)

        reads = by_first_replica(self._session, statement, keys, most, bytes_of)
        return self._answers(
            (statement, (list(some), *after))
            if near is None
            else (Routed(statement, near).bind((list(some), *after)), ())
            for some, near in reads
        )

    def _answers(
        self, requests: Iterator[tuple[Any, tuple[object, ...]]]
    ) -> Iterator[list[dict[str, Any]]]:
        with translated("reading James's tables"):
            flying = [
                self._session.execute_async(*each) for each in islice(requests, READS_IN_FLIGHT)
            ]
            while flying:
                rows = list(flying.pop(0).result())
                flying.extend(self._session.execute_async(*each) for each in islice(requests, 1))
                yield rows
