"""``reconcile canary``: writes canaries, which measure how far change capture has come.

The stream writes them in a thread if no such process runs. A process of its own continues while the
stream is down, so that a restart of the stream leaves no span unproven.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from functools import cache, partial
from threading import Event
from typing import Protocol

from checkpoints.cassandra import CassandraBookmarks, CassandraLease, Store
from reconcilers.capture.frontier import CANARY_TABLE
from reconcilers.words.errors import Misconfigured, Refused, Retryable
from streaming.canary.clock import MeasuredClock
from streaming.canary.writer import CanaryKeeper, CanaryWriter
from streaming.commands.look.web import pages
from streaming.commands.running.leases import (
    clocks_apart,
    end_lease_of_the_dead,
    lease_that_bears,
)
from streaming.commands.running.servers import until_answered
from streaming.commands.running.signals import Signalled, stopped_by_signals
from streaming.commands.running.threads import Threads, told_to_systemd
from streaming.commands.wiring.canaries import canaries
from streaming.commands.wiring.stream_names import StreamNames
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.endpoint import health_routes, served
from streaming.monitoring.metrics import Metrics
from streaming.settings import CassandraSettings, Mode, Settings
from streaming.tables import Nodes, connect, schema_of, watch_addresses
from streaming.tables.canary_schema import lacking
from streaming.tables.guardrails import refuse_guardrails
from streaming.tables.own_keyspace import make_own
from streaming.topics import Lanes, Watcher

log = logging.getLogger("reconciler")

CANARIES = "canaries"
"""The thread that writes them."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile canary``."""
    parser.add_argument(
        "--begin-anew",
        action="store_true",
        help="make all later canaries newer than any before, and end; not while any are written",
    )
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT; returns 0 after a clean stop. Raises `ReconcilerError`."""
    stop = stopped_by_signals()
    if arguments.begin_anew:
        store = _own(settings)
        keeper(settings, store).begin_anew(_highest_heard(settings, store))
        print("canaries restart: each node has one that is newer than any before")
        return 0
    try:
        with stop.first(""):
            _write(settings, Threads(stop, supervising=CANARIES))
    except Signalled as signalled:
        log.warning("stopped while it failed: %s", signalled.__cause__)
    return 0


def _write(settings: Settings, threads: Threads) -> None:
    """Wait for Cassandra and Kafka, then write canaries."""
    routes, keyspace = dict(health_routes(threads.health)), settings.cassandra.keyspace
    metrics = threads.before_waiting = cache(
        partial(served, settings.metrics, "canary_port", keyspace, "canary", routes)
    )
    with told_to_systemd(threads):
        kept = until_answered(threads, lambda: keeper(settings, _own(settings), metrics()))
        routes |= pages(settings, threads.health)
        run_canaries(settings.cassandra, kept.run, threads)


def _own(settings: Settings) -> Store:
    """Our own keyspace, where the table of canaries exists. Raises `ReconcilerError`."""
    if not has_table(settings):
        raise Misconfigured(f"{_lacking(settings)}: have an admin run `reconcile doctor --fix`")
    store = make_own(settings.cassandra)
    refuse_guardrails(store)
    return store


def run_canaries(
    settings: CassandraSettings, write: Callable[[Event], None], threads: Threads
) -> None:
    """Run ``write`` until told to stop. Raises `EndedItself` if only a new process can continue."""
    threads.start("addresses", partial(watch_addresses, settings))
    threads.start(CANARIES, write).join()
    threads.check()


def start_canaries(settings: Settings, store: Store, threads: Threads) -> None:
    """Write canaries in a thread, unless another process does or their table is missing."""
    if not has_table(settings):
        log.warning(
            "%s: no counter is corrected, and lineage does not begin (`reconcile doctor --fix`)",
            _lacking(settings),
        )
        return
    threads.start(CANARIES, keeper(settings, store).run)


def has_table(settings: Settings) -> bool:
    """Whether the table of canaries exists with all columns. Raises `Unreachable`."""
    return not _lacking(settings)


def _lacking(settings: Settings) -> str:
    keyspace = settings.canary.keyspace
    columns = schema_of(connect(settings.cassandra), keyspace).get(CANARY_TABLE)
    if columns is None:
        return f"there is no table {keyspace}.{CANARY_TABLE}"
    missing = ", ".join(lacking(columns))
    told = f"table {keyspace}.{CANARY_TABLE} lacks the columns {missing}"
    return told if missing else ""


def _highest_heard(settings: Settings, store: Store) -> int:
    """The highest number of a canary that a stream of either mode has received."""
    bookmarks = CassandraBookmarks(store)
    names = [
        StreamNames.of(settings, mode).bookmarks(family)
        for mode in Mode
        for family in settings.families()
    ]
    found = [each for each in map(bookmarks.newest, names) if each is not None]
    return max((lane.mark.number for each in found for lane in each.heard.values()), default=0)


def keeper(settings: Settings, store: Store, metrics: Metrics | None = None) -> CanaryKeeper:
    """Writes canaries while this process holds the lease; ``metrics`` show the nodes' clocks."""
    watcher, table = Watcher(settings.kafka), canaries(settings)
    warn_of_another(table, settings)
    name, leases = f"{settings.cassandra.keyspace}/canary", CassandraLease(store)
    end_lease_of_the_dead(leases, name)
    lanes = Lanes(watcher, settings.kafka.topic_prefix)
    clocks = ClockWatch(Nodes(connect(settings.cassandra)), settings.stream.delay, metrics)
    writer = CanaryWriter(table, lanes, MeasuredClock(clocks))
    lease = lease_that_bears(clocks_apart(settings.stream), leases, name)
    return CanaryKeeper(writer, lease, settings.canary.interval)


class OwnedTable(Protocol):
    """A table that one keyspace of James owns; `streaming.tables.Canaries` is the real one."""

    def claim(self) -> str:
        """Claim the table unless it is claimed; returns the keyspace that owns it."""


def warn_of_another(table: OwnedTable, settings: Settings) -> None:
    """Log an error if another installation owns the table: both would report losses."""
    ours = settings.cassandra.keyspace
    try:
        owner = table.claim()
    except (Retryable, Refused) as failed:
        log.warning("not known whose the canaries are: %s", failed)
        return
    if owner != ours:
        log.error(
            "keyspace %s is that of the reconciler of %s: set canary.keyspace to one that only %s"
            " has (deploy/runbook.md, *Two installations*)",
            settings.canary.keyspace,
            owner,
            ours,
        )
