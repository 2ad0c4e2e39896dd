"""``reconcile stream``: the long-running job. Everything it needs is opened here, in order.

::

    settings ─▶ schema, topics ─▶ lease ─▶ settled offsets ─▶ query, begun anew when it dies
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import uuid
from datetime import timedelta
from threading import Event, Thread
from typing import Any

from prometheus_client import CollectorRegistry

from checkpoints.cassandra import CassandraLease, Store
from checkpoints.lease import Holder, Lease
from reconcilers.errors import AlreadyRunning, Misconfigured
from reconcilers.family import Family, Schema, bind
from streaming.commands import workers
from streaming.commands.counters import build_counter_loop
from streaming.commands.driver import supervisor
from streaming.commands.mode import StreamNames
from streaming.commands.opened import OpenedStream
from streaming.counters.loop import CounterLoop
from streaming.monitoring.agents import AgentWatch
from streaming.monitoring.metrics import Metrics, serve
from streaming.settings import Mode, Settings
from streaming.tables import connect, schema_of
from streaming.tables.own_keyspace import make_own
from streaming.topics import Watcher, event_topics, own_topics

log = logging.getLogger("reconciler")

LEASE_LASTS = timedelta(seconds=60)


def add_command(commands: Any) -> None:
    """``reconcile stream --mode observe|repair``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "stream", help="find, and in repair mode repair, continuously"
    )
    parser.add_argument("--mode", choices=[each.value for each in Mode], default=Mode.OBSERVE.value)
    parser.add_argument(
        "--fresh-checkpoint", action="store_true", help="needless: every start begins afresh"
    )
    parser.add_argument(
        "--accept-loss", action="store_true", help="go on though Kafka's retention has passed"
    )
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run until SIGTERM or SIGINT; returns 0 after a clean stop. Raises `ReconcilerError`."""
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    names = StreamNames.of(settings, Mode(arguments.mode))
    store = make_own(settings.cassandra)
    schema = schema_of(connect(settings.cassandra), settings.cassandra.keyspace)
    family = bind(settings.families()[0], schema)
    watcher = Watcher(settings.kafka)
    topics = _topics(settings, family, names, watcher)
    with Holding(names, store, stop) as lease:
        metrics = Metrics(CollectorRegistry())
        port = serve(metrics, settings.metrics)
        metrics.started.set_to_current_time()
        agents = AgentWatch(settings.agent.http, metrics)
        Thread(target=agents.run, args=(stop,), name="agents", daemon=True).start()
        log.info("watching %s in %s mode; metrics on port %s", family.truth.table, names.mode, port)
        job = workers.job(settings, family, names.suspects_topic)
        opened = OpenedStream(
            job, names, store, watcher, topics, lease, metrics, arguments.accept_loss
        )
        loop = _counters(opened, schema)
        keeper = supervisor(opened, loop.take if loop is not None else None)
        if loop is not None:
            Thread(target=loop.run, args=(stop,), name="tallies", daemon=True).start()
        keeper.run(stop)
    watcher.close()
    return 0


def _counters(opened: OpenedStream, schema: Schema) -> CounterLoop | None:
    """The loop of the counters that are kept, if any are."""
    kept = tuple(bind(each, schema) for each in opened.settings.families()[1:])
    return build_counter_loop(opened, kept) if kept else None


def _topics(
    settings: Settings, family: Family, names: StreamNames, watcher: Watcher
) -> tuple[str, ...]:
    watcher.create(own_topics(settings.kafka))
    topics = (*event_topics(settings, family), names.suspects_topic)
    missing = watcher.missing(topics)
    if missing:
        raise Misconfigured(
            f"topics do not exist: {', '.join(missing)}; is CDC on, the agent running, and"
            " kafka.topic_prefix right? (`reconcile doctor` tells)"
        )
    return topics


class Holding:
    """Holds the lease while the stream lives; observe mode needs none (a context manager)."""

    def __init__(self, names: StreamNames, store: Store, stop: Event) -> None:
        self._stop = stop
        self._name = names.lease
        self._store = CassandraLease(store)
        self._lease: Lease | None = None
        if names.mode is Mode.REPAIR:
            holder = Holder(str(uuid.uuid4()), f"{socket.gethostname()}:{os.getpid()}")
            self._lease = Lease(self._store, self._name, holder, LEASE_LASTS)

    def __enter__(self) -> Lease | None:
        """Acquire, and renew in a thread. Raises `AlreadyRunning`."""
        if self._lease is not None:
            self._end_lease_of_the_dead()
            self._lease.acquire()
            Thread(target=self._lease.keep, args=(self._stop,), daemon=True).start()
        return self._lease

    def _end_lease_of_the_dead(self) -> None:
        """A stream that was killed on this very host leaves its lease behind: no need to wait."""
        holder = self._store.held_by(self._name)
        if holder is None:
            return
        host, _, pid = holder.host.rpartition(":")
        if host == socket.gethostname() and (int(pid) == os.getpid() or not _alive(int(pid))):
            log.warning("taking over from process %s of this host, which is gone", pid)
            self._store.leave(self._name, holder)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let the next stream begin at once."""
        self._stop.set()
        if self._lease is not None and kind is not AlreadyRunning:
            self._lease.release()


def _alive(pid: int) -> bool:
    """Whether a process of this host with this number runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
