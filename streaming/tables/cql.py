"""A guarded write as CQL. The table is always that of the write's projection (promise 1)."""

from __future__ import annotations

from reconcilers.declared.writes import AddRow, AddToSet, DeleteRow, RemoveFromSet, SetCells, Write
from reconcilers.words.errors import NotGuarded


def as_cql(write: Write, keyspace: str) -> tuple[str, tuple[object, ...]]:
    """The statement with markers, and its values. Each has a timestamp, which is the guard."""
    table, key = f"{keyspace}.{write.projection.table}", write.projection.key
    where = "WHERE " + " AND ".join(f"{column} = ?" for column in key)
    slot = write.slot.key[: len(key)]
    match write:
        case SetCells(at=at, cells=cells):
            columns = sorted(cells)
            assignments = ", ".join(f"{column} = ?" for column in columns)
            query = f"UPDATE {table} USING TIMESTAMP ? SET {assignments} {where}"
            return query, (at, *(cells[column] for column in columns), *slot)
        case AddToSet(at=at, column=column, elements=elements):
            query = f"UPDATE {table} USING TIMESTAMP ? SET {column} = {column} + ? {where}"
            return query, (at, set(elements), *slot)
        case RemoveFromSet(at=at, column=column, elements=elements):
            query = f"UPDATE {table} USING TIMESTAMP ? SET {column} = {column} - ? {where}"
            return query, (at, set(elements), *slot)
        case AddRow(at=at):
            marks = ", ".join("?" for _ in key)
            query = f"INSERT INTO {table} ({', '.join(key)}) VALUES ({marks}) USING TIMESTAMP ?"
            return query, (*slot, at)
        case DeleteRow(at=at):
            return f"DELETE FROM {table} USING TIMESTAMP ? {where}", (at, *slot)
    raise NotGuarded(f"{type(write).__name__} is not a write of ours")
