"""Whether sources (messages) have content or an owner, at the consistency of James's reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cassandra.cluster import Session

from reconcilers.declared.truth import Owner, TruthTable
from reconcilers.words.model import KeyValue
from streaming.settings import CassandraSettings
from streaming.tables.session import levels_of
from streaming.tables.statement_cache import StatementCache


class ContentTables:
    """The tables of content of one truth, in one keyspace. Not thread-safe."""

    def __init__(self, session: Session, settings: CassandraSettings, truth: TruthTable) -> None:
        self._statements = StatementCache(session)
        self._settings = settings
        self._truth = truth

    def having_content(self, sources: Sequence[KeyValue]) -> frozenset[KeyValue]:
        """The sources that have content, or a row of their owner.

        The owner is read first, at serial consistency: James writes content before it. An older
        table is read before a newer one: content that moves meanwhile is then found in that. Raises
        `reconcilers.words.errors.Refused` if a table may not be read.
        """
        return frozenset(
            each for place in self._truth.kept_in for each in self._in(*place, sources)
        )

    def having_owner(self, sources: Sequence[KeyValue]) -> frozenset[KeyValue]:
        """Those with a row of their owner. Raises `reconcilers.words.errors.Refused` as above."""
        return self._owned(self._truth.owner, sources)

    def having_user(self, things: Sequence[KeyValue]) -> frozenset[KeyValue]:
        """Those that a user owns; all if no user is known to own anything.

        Raises `reconcilers.words.errors.Refused` as above.
        """
        by = self._truth.users
        owned = self._owned(by, things)
        return owned if by is not None and (owned or self._has_rows(by)) else frozenset(things)

    def _has_rows(self, by: Owner) -> bool:
        query = f"SELECT {by.key} FROM {self._settings.keyspace}.{by.table} LIMIT 1"
        found = self._statements.rows(self._statements.prepared(query), ())
        return next(iter(found), None) is not None

    def _owned(self, by: Owner | None, things: Sequence[KeyValue]) -> frozenset[KeyValue]:
        return frozenset() if by is None else frozenset(self._in(by.table, by.key, things))

    def _in(self, table: str, key: str, sources: Sequence[KeyValue]) -> Iterator[KeyValue]:
        serial = {"consistency_level": levels_of(self._settings).serial}
        options = serial if self._truth.owner and table == self._truth.owner.table else {}
        query = self._statements.prepared(
            f"SELECT {key} FROM {self._settings.keyspace}.{table} WHERE {key} = ?", **options
        )
        for rows in self._statements.each(query, ((each,) for each in sources)):
            yield from (row[key] for row in rows)
