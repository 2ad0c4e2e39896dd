"""Some rows of a table with their write times, and since when its changes are captured."""

from __future__ import annotations

from cassandra.cluster import Session

from checkpoints.cassandra.driver_errors import translated
from reconcilers.declared.unheard import RowWrite
from reconcilers.words.model import Micros

SAMPLE = 10_000
"""Rows that are read, in no order of time."""
ALTERED = (
    "SELECT table_name, cdc, WRITETIME(cdc) AS altered_at FROM system_schema.tables"
    " WHERE keyspace_name = %s"
)


class RecentWrites:
    """Reads of one keyspace. Each raises `Retryable`, or `Refused` without the right."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self._session, self._keyspace = session, keyspace

    def captured_since(self) -> dict[str, Micros]:
        """By captured table, when (µs) its settings were last changed."""
        with translated("asking which tables are captured"):
            rows = self._session.execute(ALTERED, (self._keyspace,))
            return {row["table_name"]: row["altered_at"] for row in rows if row["cdc"]}

    def sample(self, table: str, key: str, column: str) -> list[RowWrite]:
        """Some rows, with the write time of a column."""
        query = f"SELECT {key}, writetime({column}) AS written_at FROM {self._keyspace}.{table}"
        with translated(f"reading {self._keyspace}.{table}"):
            rows = self._session.execute(f"{query} LIMIT {SAMPLE}")
            return [
                RowWrite(str(row[key]), row["written_at"])
                for row in rows
                if row["written_at"] is not None
            ]
