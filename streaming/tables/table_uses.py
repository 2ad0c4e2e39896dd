"""Whether James uses the table of a listing, from some sources of the truth."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.declared.family import Family
from reconcilers.rows.table_use import ListingUse, newest_places
from reconcilers.words.errors import MalformedContent
from reconcilers.words.model import KeyValue, Row
from streaming.settings import CassandraSettings
from streaming.tables.tables import Tables

SAMPLE = 1_000
"""How many sources of each table of the truth are read, in the order of their tokens."""
A_READ = 100


def use_of(session: Session, settings: CassandraSettings, family: Family) -> ListingUse:
    """How James uses the table of a bound family's listing.

    A source with malformed content is left out. Raises `reconcilers.words.errors.Retryable`, or
    `Refused` if a table may not be read.
    """
    tables, listing = Tables(session, settings, family), family.listing
    sources = _sources(session, settings.keyspace, family)
    newest = newest_places(family, listing, _truths(tables, sources))
    there = tables.projection_rows(listing, newest)
    return ListingUse(listing.table, len(newest), len(there))


def _sources(session: Session, keyspace: str, family: Family) -> Iterator[KeyValue]:
    source = family.truth.source.name
    for table in family.truth.tables:
        with translated(f"reading {keyspace}.{table}"):
            query = f"SELECT DISTINCT {source} FROM {keyspace}.{table} LIMIT {SAMPLE}"
            yield from (row[source] for row in session.execute(query))


def _truths(tables: Tables, sources: Iterator[KeyValue]) -> Iterator[Row]:
    while some := list(islice(sources, A_READ)):
        try:
            yield from _rows(tables, some)
        except MalformedContent:
            for each in some:
                with suppress(MalformedContent):
                    yield from _rows(tables, [each])


def _rows(tables: Tables, sources: Sequence[KeyValue]) -> Iterable[Row]:
    return [row for rows in tables.truth_with_times(sources).values() for row in rows]
