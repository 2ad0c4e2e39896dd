"""Whether James uses a projection's table, from some sources of the truth."""

from __future__ import annotations

from collections.abc import Iterator

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.declared.family import Family, Projection
from reconcilers.rows.table_use import newest_places, why_unused
from reconcilers.words.errors import MalformedContent
from reconcilers.words.model import KeyValue, Row
from streaming.settings import CassandraSettings
from streaming.tables.tables import Tables

SAMPLE = 1_000
"""How many sources of each table of the truth are read, in the order of their tokens."""


def why_unused_here(
    session: Session, settings: CassandraSettings, family: Family, projection: Projection
) -> str | None:
    """Why James does not use the table of a bound family's projection, None if it does.

    A source with malformed content is left out. Raises `reconcilers.words.errors.Retryable`, or
    `Refused` if a table may not be read.
    """
    tables = Tables(session, settings, family)
    truths = _truths(tables, _sources(session, settings.keyspace, family))
    newest = newest_places(family, projection, truths)
    return why_unused(projection, newest, len(tables.projection_rows(projection, newest)))


def _sources(session: Session, keyspace: str, family: Family) -> Iterator[KeyValue]:
    source = family.truth.source.name
    for table in family.truth.tables:
        with translated(f"reading {keyspace}.{table}"):
            query = f"SELECT DISTINCT {source} FROM {keyspace}.{table} LIMIT {SAMPLE}"
            yield from (row[source] for row in session.execute(query))


def _truths(tables: Tables, sources: Iterator[KeyValue]) -> Iterator[Row]:
    for each in sources:
        try:
            found = tables.truth_with_times([each])
        except MalformedContent:
            continue
        yield from found.get(each, ())
