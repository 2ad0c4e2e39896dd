"""Turning change capture on for tables, and knowing which tables have it.

The agent reliably sees only the tables that were there when it started. Of what is created later it
misses tables with a user-defined type, and tables that appear together with their keyspace. So
capture is turned on while the agent is stopped (agent.py): then no change is lost in between.
"""

import logging
from collections.abc import Collection
from typing import Any

log = logging.getLogger(__name__)


def captured(session: Any) -> frozenset[str]:
    """Every table of any keyspace that has capture on, each by its id; raises cql.UNREACHABLE.

    A table that was dropped and made again has another id.
    """
    rows = session.execute("SELECT id, cdc FROM system_schema.tables")
    return frozenset(str(row["id"]) for row in rows if row["cdc"])


def lacking(session: Any, keyspace: str, tables: Collection[str]) -> frozenset[str]:
    """Those of `tables` that exist in `keyspace` without capture. Raises cql.UNREACHABLE."""
    rows = session.execute(
        "SELECT table_name, cdc FROM system_schema.tables WHERE keyspace_name = %s", (keyspace,)
    )
    return frozenset(r["table_name"] for r in rows if r["table_name"] in tables and not r["cdc"])


def statements(table: str, grace: int) -> tuple[str, str]:
    """The CQL that turns capture on; `grace` is the table's gc_grace_seconds as it is.

    Cassandra would not capture what statements write that were prepared before: the change of
    gc_grace_seconds, by a second and back, makes it prepare them anew.
    """
    return (
        f"ALTER TABLE {table} WITH cdc = true AND gc_grace_seconds = {grace + 1}",
        f"ALTER TABLE {table} WITH gc_grace_seconds = {grace}",
    )


def switch_on(session: Any, keyspace: str, tables: Collection[str]) -> None:
    """Turn capture on for those of `tables` that lack it. Raises cql.UNREACHABLE."""
    rows = session.execute(
        "SELECT table_name, gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = %s",
        (keyspace,),
    )
    grace = {row["table_name"]: row["gc_grace_seconds"] for row in rows}
    for table in sorted(lacking(session, keyspace, tables)):
        for cql in statements(f'"{keyspace}"."{table}"', grace[table]):
            session.execute(cql)
        log.info("change capture is on for %s.%s", keyspace, table)
