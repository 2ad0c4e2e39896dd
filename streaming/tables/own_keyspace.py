"""Opens the reconciler's own keyspace, or upgrades it first."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from checkpoints import losses
from checkpoints.cassandra import (
    CassandraJournal,
    CassandraLineage,
    CassandraLosses,
    CassandraOwner,
    Store,
)
from checkpoints.clock import now_micros
from checkpoints.schema.upgrade import SchemaGap, SchemaStore, read_gap, upgrade
from reconcilers.declared.capture import rests_on
from reconcilers.words.errors import Misconfigured, Refused
from streaming.settings import CassandraSettings, Settings
from streaming.tables import connect, store_of

log = logging.getLogger(__name__)

MOST_COPIES = 3


@dataclass(frozen=True, slots=True)
class OwnStores:
    """The durable stores that a command needs."""

    store: Store
    journal: CassandraJournal
    lineage: CassandraLineage


def open_own(settings: Settings) -> OwnStores:
    """Open the keyspace without changing it.

    Raises `Misconfigured` if a step of its schema is missing or it is another installation's,
    `OtherSchema`, `Unreachable`, `Refused`.
    """
    cassandra = settings.cassandra
    store = _store(cassandra)
    refuse_another(store, cassandra)
    gap = gap_in(store, cassandra)
    if gap.todo:
        raise Misconfigured(
            f"{lacks(cassandra, gap)}: start `reconcile stream` once, or have an admin run"
            " `reconcile doctor --fix`"
        )
    kept = timedelta(days=settings.repair.log_days)
    journal = CassandraJournal(store, scope=cassandra.keyspace, log_kept=kept)
    return OwnStores(store, journal, CassandraLineage(store))


def make_own(settings: CassandraSettings) -> Store:
    """Finish every step of the keyspace's schema, and claim it for this installation.

    Raises `Misconfigured` if rights are missing or it is another installation's, `OtherSchema`,
    `AlreadyRunning` if rows must be copied while another stream runs, `Unreachable`.
    """
    store = _store(settings)
    refuse_another(store, settings)
    try:
        finish(store, settings, lambda line: log.info("own keyspace: %s", line))
    except Refused as refused:
        raise Misconfigured(
            f"{lacks(settings, gap_in(store, settings))}: have an admin run"
            f" `reconcile doctor --fix` ({refused})"
        ) from refused
    _refuse(CassandraOwner(store).claim(settings.keyspace), settings)
    return store


def refuse_another(store: Store, settings: CassandraSettings) -> None:
    """Raises `Misconfigured` if it is another installation's; an empty keyspace has no owner."""
    with suppress(Refused):  # the table of owners does not exist yet
        _refuse(CassandraOwner(store).owner(), settings)


def _refuse(owner: str | None, settings: CassandraSettings) -> None:
    if owner not in {None, settings.keyspace}:
        raise Misconfigured(
            f"keyspace {settings.own_keyspace} is that of the reconciler of {owner}: set"
            f" cassandra.own_keyspace to one that only {settings.keyspace} has (deploy/runbook.md,"
            " *Two installations*)"
        )


def end_memory(store: Store, why: str) -> None:
    """End memory as `checkpoints.losses.end_memory` does. Raises `Unreachable`, `Refused`."""
    loss = losses.Loss(now_micros(), why)
    losses.end_memory(CassandraLineage(store), partial(_record, store), loss)


def _record(store: Store, loss: losses.Loss) -> None:
    with suppress(Refused):  # an empty keyspace has no table of losses
        CassandraLosses(store).record(loss)


def end_memory_of(store: Store, tables: Collection[str], why: str) -> bool:
    """End memory, and return True, if it rests on the capture of one of these tables.

    Raises `Unreachable`, `Refused`.
    """
    watching = CassandraLineage(store).watching()
    if watching is None or not rests_on(watching.captured, tables):
        return False
    end_memory(store, why)
    return True


def finish(store: SchemaStore, settings: CassandraSettings, told: Callable[[str], None]) -> None:
    """Finish every step of the schema, reporting each to ``told``. Raises as `upgrade` does."""
    upgrade(store, replication(settings, store), told)


def gap_in(store: SchemaStore, settings: CassandraSettings) -> SchemaGap:
    """What our own keyspace lacks of its schema. Raises as `read_gap` does."""
    return read_gap(store, replication(settings, store))


def lacks(settings: CassandraSettings, gap: SchemaGap) -> str:
    """The gap in a few words."""
    rest = len(gap.what) - 3
    few = ", ".join(gap.what[:3]) + (f" and {rest} more" if rest > 0 else "")
    return f"keyspace {settings.own_keyspace} lacks {few}"


def replication(settings: CassandraSettings, store: SchemaStore) -> Mapping[str, str]:
    """The replication of a new own keyspace: as set, else up to three copies, one on each node."""
    nodes = store.nodes(settings.local_dc)
    copies = str(settings.own_replication or max(1, min(MOST_COPIES, nodes)))
    if settings.local_dc:
        return {"class": "NetworkTopologyStrategy", settings.local_dc: copies}
    return {"class": "SimpleStrategy", "replication_factor": copies}


def _store(settings: CassandraSettings) -> Store:
    return store_of(connect(settings), settings)
