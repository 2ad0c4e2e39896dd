"""The reconciler's own keyspace: what it must have, and opened where it must not be created."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from checkpoints.cassandra import CassandraJournal, CassandraLineage, Store, levels
from checkpoints.cassandra.store import schema_statements
from reconcilers.errors import Misconfigured
from reconcilers.family import Schema
from streaming.settings import CassandraSettings, Settings
from streaming.tables import Cluster, connect, schema_of

CREATED = re.compile(r"CREATE TABLE IF NOT EXISTS \w+\.(\w+) \((.*?)\n\)", re.DOTALL)
COLUMN = re.compile(r"^    ([a-z_]+) ([a-z<>, ]+),$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OwnStores:
    """What survives a crash, for a command."""

    store: Store
    journal: CassandraJournal
    lineage: CassandraLineage


@dataclass(frozen=True, slots=True)
class SchemaGap:
    """The tables and columns that are not there yet, and what an admin runs to add them."""

    what: tuple[str, ...] = ()
    cql: tuple[str, ...] = ()


def open_own(settings: Settings) -> OwnStores:
    """Open it. Raises `Misconfigured` when it was not made yet, `Unreachable`, `Refused`."""
    cassandra = settings.cassandra
    session = connect(cassandra)
    wanted = lacking(cassandra, schema_of(session, cassandra.own_keyspace))
    if wanted.what:
        raise Misconfigured(
            f"keyspace {cassandra.own_keyspace} lacks {_few(wanted.what)}: start `reconcile stream`"
            " once, or have an admin run `reconcile doctor --fix`"
        )
    store = Store(session, cassandra.own_keyspace, levels(cassandra.local_dc))
    kept = timedelta(days=settings.repair.log_days)
    journal = CassandraJournal(store, scope=cassandra.keyspace, log_kept=kept)
    return OwnStores(store, journal, CassandraLineage(store))


def make_own(settings: CassandraSettings) -> Store:
    """Open it, first making what is lacking. Raises `Refused` without the rights to."""
    session = connect(settings)
    wanted = lacking(settings, schema_of(session, settings.own_keyspace))
    cluster = Cluster(session)
    for statement in wanted.cql:
        cluster.run(statement)
    return Store(session, settings.own_keyspace, levels(settings.local_dc))


def lacking(settings: CassandraSettings, schema: Schema) -> SchemaGap:
    """What this version needs in its keyspace and ``schema`` does not have."""
    statements = schema_statements(settings.own_keyspace, replication(settings))
    wanted = expected(statements)
    tables = [table for table in wanted if table not in schema]
    columns = [
        (table, column, kind)
        for table, columns in wanted.items()
        if table in schema
        for column, kind in columns.items()
        if column not in schema[table]
    ]
    what = [f"table {table}" for table in tables]
    what += [f"column {table}.{column}" for table, column, _ in columns]
    cql = [
        f"ALTER TABLE {settings.own_keyspace}.{table} ADD {column} {kind}"
        for table, column, kind in columns
    ]
    return SchemaGap(tuple(what), (*(statements if tables else ()), *cql))


def replication(settings: CassandraSettings) -> Mapping[str, str]:
    """How our own keyspace is replicated when it is made."""
    copies = str(settings.own_replication)
    if settings.local_dc:
        return {"class": "NetworkTopologyStrategy", settings.local_dc: copies}
    return {"class": "SimpleStrategy", "replication_factor": copies}


def expected(statements: list[str]) -> dict[str, dict[str, str]]:
    """Column types by table, from our own CREATE statements."""
    found = (CREATED.search(statement) for statement in statements)
    return {each[1]: dict(COLUMN.findall(each[2])) for each in found if each is not None}


def _few(what: tuple[str, ...]) -> str:
    """The first of many."""
    rest = len(what) - 3
    return ", ".join(what[:3]) + (f" and {rest} more" if rest > 0 else "")
