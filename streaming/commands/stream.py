"""``reconcile stream``: the long-running job. Everything it needs is made here, in order.

::

    settings ─▶ schema, topics ─▶ lease ─▶ checkpoint or bookmark ─▶ query, restarted when it dies
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import uuid
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from prometheus_client import CollectorRegistry

from checkpoints import directory, fingerprint
from checkpoints.cassandra import CassandraBookmarks, CassandraLease, Store
from checkpoints.lease import Holder, Lease
from reconcilers.errors import AlreadyRunning, Misconfigured
from reconcilers.family import Family, bind
from streaming.commands.counters import build_counter_loop
from streaming.monitoring.clocks import ClockWatch
from streaming.monitoring.lag import LagWatch
from streaming.monitoring.metrics import Metrics, serve
from streaming.pipeline.batches import Batches, Rates
from streaming.pipeline.query import FamilyQuery
from streaming.pipeline.session import spark_session
from streaming.pipeline.supervisor import QuerySupervisor
from streaming.pipeline.worker import Job, connections
from streaming.settings import Settings
from streaming.tables import connect, schema_of
from streaming.tables.own_keyspace import make_own
from streaming.topics import Watcher, event_topics, own_topics, publish_wakes

log = logging.getLogger("reconciler")

LEASE_LASTS = timedelta(seconds=60)


def add_command(commands: Any) -> None:
    """``reconcile stream --mode observe|repair``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "stream", help="find, and in repair mode repair, continuously"
    )
    parser.add_argument("--mode", choices=("observe", "repair"), default="observe")
    parser.add_argument(
        "--fresh-checkpoint", action="store_true", help="begin at the bookmark; loses nothing"
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
    mode = Mode.of(settings, arguments.mode)
    store = make_own(settings.cassandra)
    schema = schema_of(connect(settings.cassandra), settings.cassandra.keyspace)
    message, *others = settings.families()
    family = bind(message, schema)
    watcher = Watcher(settings.kafka)
    topics = _topics(settings, family, mode, watcher)
    with Holding(mode, store, stop) as lease:
        metrics = Metrics(CollectorRegistry())
        port = serve(metrics, settings.metrics)
        log.info("watching %s in %s mode; metrics on port %s", family.truth, mode.name, port)
        decisions = Batches(
            family=family,
            stream=mode.stream_name(family),
            ports=connections(settings, family),
            bookmarks=CassandraBookmarks(store),
            lease=lease,
            metrics=metrics,
            rates=Rates.of(settings),
            commit=partial(watcher.commit, mode.group),
            observe=mode.observe,
        )
        tallies = tuple(bind(each, schema) for each in others)
        if tallies:
            loop = build_counter_loop(settings, tallies, store, decisions)
            decisions.tallies = loop.take
            Thread(target=loop.run, args=(stop,), name="tallies", daemon=True).start()
        if arguments.fresh_checkpoint:
            directory.set_aside(mode.checkpoint)
        life = _life(Job(settings, family, mode.suspects_topic), mode, decisions, watcher, topics)
        life.accept_loss = arguments.accept_loss
        life.run(stop)
    watcher.close()
    return 0


def _life(
    job: Job, mode: Mode, decisions: Batches, watcher: Watcher, topics: tuple[str, ...]
) -> QuerySupervisor:
    """Raises `IncompatibleCheckpoint` before Spark is started, which takes long."""
    settings, metrics = job.settings, decisions.metrics
    publish = partial(publish_wakes, settings.kafka, job.suspects_topic, job.family.name)
    made_with = fingerprint.Fingerprint(
        topics,
        (job.family.name,),
        settings.stream.shuffle_partitions,
        settings.kafka.topic_prefix,
    )
    fingerprint.check(mode.checkpoint, made_with)
    spark = spark_session(settings.stream)
    return QuerySupervisor(
        query=FamilyQuery(spark, job, mode.checkpoint, decisions, publish, watcher.partitions),
        decisions=decisions,
        watcher=watcher,
        topics=topics,
        metrics=metrics,
        lag=LagWatch(watcher, topics, metrics),
        clocks=ClockWatch(connect(settings.cassandra), settings.stream.delay, metrics),
        fingerprint=made_with,
        window_ms=round(settings.stream.window * 1000),
        restart_backoff_max=settings.stream.restart_backoff_max,
    )


@dataclass(frozen=True, slots=True)
class Mode:
    """Observe and repair keep everything apart but the findings and lineage."""

    name: str
    suspects_topic: str
    group: str
    checkpoint: Path
    keyspace: str

    @classmethod
    def of(cls, settings: Settings, name: str) -> Mode:
        """The mode's topics, group and checkpoint."""
        kafka, suffix = settings.kafka, "" if name == "repair" else f"-{name}"
        topic = kafka.suspects_topic if name == "repair" else kafka.observe_suspects_topic
        where = settings.stream.checkpoint_dir / name
        return cls(name, topic, f"{kafka.group}{suffix}", where, settings.cassandra.keyspace)

    @property
    def observe(self) -> bool:
        """Whether nothing is written to mail tables."""
        return self.name == "observe"

    @property
    def lease_name(self) -> str:
        """One live stream repairs a keyspace."""
        return f"{self.keyspace}/{self.name}"

    def stream_name(self, family: Family) -> str:
        """Names its bookmarks."""
        return f"{self.keyspace}/{family.name}/{self.name}"


def _topics(settings: Settings, family: Family, mode: Mode, watcher: Watcher) -> tuple[str, ...]:
    watcher.create(own_topics(settings.kafka))
    topics = (*event_topics(settings, family), mode.suspects_topic)
    missing = watcher.missing(topics)
    if missing:
        raise Misconfigured(
            f"topics do not exist: {', '.join(missing)}; is CDC on, the agent running, and"
            " kafka.topic_prefix right? (`reconcile doctor` tells)"
        )
    return topics


class Holding:
    """Holds the lease while the stream lives; observe mode needs none (a context manager)."""

    def __init__(self, mode: Mode, store: Store, stop: Event) -> None:
        self._stop = stop
        self._name = mode.lease_name
        self._store = CassandraLease(store)
        self._lease: Lease | None = None
        if not mode.observe:
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
