"""Whether sources (messages) have content or an owner, at the consistency of James's reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cassandra.cluster import Session

from reconcilers.declared.truth import TruthTable
from reconcilers.words.model import KeyValue
from streaming.settings import CassandraSettings
from streaming.tables.statement_cache import StatementCache


class ContentTables:
    """The tables of content of one truth, in one keyspace. Not thread-safe."""

    def __init__(self, session: Session, settings: CassandraSettings, truth: TruthTable) -> None:
        self._statements = StatementCache(session)
        self._keyspace = settings.keyspace
        self._truth = truth

    def having_content(self, sources: Sequence[KeyValue]) -> frozenset[KeyValue]:
        """The sources that have content.

        The older table is read first: content that moves meanwhile is then found in the newer one.
        Raises `reconcilers.words.errors.Refused` if a table may not be read.
        """
        return frozenset(
            each for place in self._truth.kept_in for each in self._in(*place, sources)
        )

    def _in(self, table: str, source: str, sources: Sequence[KeyValue]) -> Iterator[KeyValue]:
        query = self._statements.prepared(
            f"SELECT {source} FROM {self._keyspace}.{table} WHERE {source} = ?"
        )
        for rows in self._statements.each(query, ((each,) for each in sources)):
            yield from (row[source] for row in rows)
