"""The reconciler's own keyspace, opened by a command that must not create it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from checkpoints.cassandra import CassandraJournal, CassandraLineage, Store, levels
from reconcilers.errors import Misconfigured
from streaming.settings import Settings
from streaming.tables import connect, schema_of


@dataclass(frozen=True, slots=True)
class Own:
    """What survives a crash, for a command."""

    store: Store
    journal: CassandraJournal
    lineage: CassandraLineage


def open_own(settings: Settings) -> Own:
    """Open it. Raises `Misconfigured` when it was never made, `Unreachable`, `Refused`."""
    cassandra = settings.cassandra
    session = connect(cassandra)
    if "open_findings" not in schema_of(session, cassandra.own_keyspace):
        raise Misconfigured(
            f"keyspace {cassandra.own_keyspace} is not there: start `reconcile stream` once, or"
            " have an admin run `reconcile doctor --fix`"
        )
    store = Store(session, cassandra.own_keyspace, levels(cassandra.local_dc))
    kept = timedelta(days=settings.repair.log_days)
    journal = CassandraJournal(store, scope=cassandra.keyspace, log_kept=kept)
    return Own(store, journal, CassandraLineage(store))
