"""``reconcile lwt-report``: shows what lightweight transactions cost this cluster. Only reads."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from checkpoints.clock import to_seconds
from reconcilers.lwt.cost import Cost, cost_of
from reconcilers.lwt.placement import Placement, Reach
from reconcilers.lwt.statements import Gauges, NodeSnapshot, Work, between, together
from reconcilers.words.errors import Misconfigured, ReconcilerError, Refused, Retryable, Unreachable
from streaming.commands.arguments.output import TABLE, add_object_format, object_text
from streaming.commands.arguments.times import duration_of
from streaming.commands.lwt.beans import JmxLogin, NodeBeans, beans_of
from streaming.commands.lwt.jvm import Jvm
from streaming.commands.lwt.own_reads import newly_confirmed, suspects_confirmed
from streaming.commands.lwt.report_shown import Shown, as_json, as_text
from streaming.settings import CassandraSettings, Settings
from streaming.tables.node_metrics import COMPACTIONS, NodeMetrics, node_metrics

MINUTE = "1m"
ASKED_AGAIN_AFTER = 0.5
"""Seconds."""
AskNode = Callable[[JmxLogin], NodeBeans]
"""Reads one node over JMX. Raises `ReconcilerError`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile lwt-report [--interval 1m] [--watch] [--jmx HOST:PORT]``."""
    parser.add_argument(
        "--interval",
        type=duration_of,
        default=duration_of(MINUTE),
        metavar="TIME",
        help=f"what is measured: 10s, {MINUTE} (default), 1h",
    )
    parser.add_argument("--watch", action="store_true", help="one report after the other, for ever")
    parser.add_argument(
        "--jmx",
        action="append",
        default=[],
        type=_place,
        metavar="HOST:PORT",
        help="where nodes answer JMX; without it at each node's address, port cassandra.jmx_port",
    )
    add_object_format(parser)
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Read twice, print the difference.

    Raises `Unreachable` if no node answers; `Misconfigured`.
    """
    cassandra = settings.cassandra
    with node_metrics(cassandra) as metrics, asking(cassandra.request_timeout) as ask:
        shown = _shown(metrics, settings)
        beans = Beans(ask, cassandra, arguments.jmx)
        reader = Reader(metrics, beans, cassandra.username, cassandra.request_timeout)
        before = _snapshots(reader, settings)
        while True:
            time.sleep(to_seconds(arguments.interval))
            try:
                after = _snapshots(reader, settings)
                cost = _cost(before, after, placement_of(metrics, cassandra))
            except Retryable as failed:
                if not arguments.watch:
                    raise
                sys.stderr.write(f"reconcile: {failed}\n")  # the next report is on both intervals
                continue
            print(_text(arguments.format, cost, shown), flush=True)
            if not arguments.watch:
                return 0
            before = after


def _text(form: str, cost: Cost, shown: Shown) -> str:
    if form == TABLE:
        return "\n".join(as_text(cost, shown))
    return object_text(form, as_json(cost, shown))


@dataclass(frozen=True, slots=True)
class Snapshots:
    """The answers of all nodes and of our stream at one time (monotonic, s)."""

    at: float
    nodes: Mapping[str, NodeSnapshot | str]
    confirmed: int | None


def _snapshots(reader: Reader, settings: Settings) -> Snapshots:
    nodes = reader.snapshots()
    return Snapshots(time.monotonic(), nodes, suspects_confirmed(settings.metrics))


def placement_of(metrics: NodeMetrics, settings: CassandraSettings) -> Placement:
    """The nodes and copies, and the reach of prepares: that of a level that was set, as James's."""
    reach = Reach.ONE if settings.serial_consistency == "LOCAL_SERIAL" else Reach.ALL
    prepares = reach if settings.levels_are_set else Reach.UNKNOWN
    return Placement(metrics.centres(), metrics.copies(), prepares)


def _cost(before: Snapshots, after: Snapshots, placement: Placement) -> Cost:
    cost = cost_of(measured(before.nodes, after.nodes), placement, after.at - before.at)
    return replace(cost, confirmed=newly_confirmed(before.confirmed, after.confirmed))


@dataclass(frozen=True, slots=True)
class Beans:
    """Asks nodes over JMX at ``places`` (HOST:PORT), without any each node at its own address.

    Each answer names its node.
    """

    ask: AskNode
    settings: CassandraSettings
    places: list[str]

    def read(self, addresses: Mapping[str, str]) -> tuple[dict[str, NodeBeans], dict[str, str]]:
        """The answers by host id, and for each silent node the reason."""
        own = {name: f"{node}:{self.settings.jmx_port}" for name, node in addresses.items()}
        answers = {place: self._answer(place) for place in self.places or own.values()}
        told = {each.host_id: each for each in answers.values() if isinstance(each, NodeBeans)}
        failed = {place: each for place, each in answers.items() if isinstance(each, str)}
        every = "; ".join(failed.values()) or "no --jmx is of this node"
        silent = addresses.keys() - told.keys()
        return told, {name: failed.get(own[name], every) for name in silent}

    def _answer(self, place: str) -> NodeBeans | str:
        host, _, port = place.rpartition(":")
        username, password = self.settings.jmx_username, self.settings.jmx_password
        ca = self.settings.tls_ca if self.settings.jmx_tls else None
        try:
            return self.ask(JmxLogin(host.strip("[]"), int(port), username, password, ca))
        except ReconcilerError as failed:
            return str(failed)


@dataclass(frozen=True, slots=True)
class Reader:
    """Takes a snapshot of each node that answers within its ``patience`` (s).

    A node that was restarted has closed our connection, and is asked again.
    """

    metrics: NodeMetrics
    beans: Beans
    role: str | None
    patience: float

    def snapshots(self) -> dict[str, NodeSnapshot | str]:
        """By node, its snapshot or why there is none. Raises if no node answers."""
        addresses = self.metrics.addresses()
        beans, silent = self.beans.read(addresses)
        until = time.monotonic() + self.patience
        found: dict[str, NodeSnapshot | str] = {}
        for name, node in addresses.items():
            found[node] = self._answer(node, beans.get(name), silent.get(name), until)
        if not any(isinstance(each, NodeSnapshot) for each in found.values()):
            raise Unreachable("; ".join(str(each) for each in found.values()) or "no nodes")
        return found

    def _answer(
        self, node: str, beans: NodeBeans | None, silent: str | None, until: float
    ) -> NodeSnapshot | str:
        while True:
            try:
                return self._one(node, beans, silent)
            except Retryable as failed:
                if time.monotonic() > until:
                    return f"{node} is left out: {failed}"
                time.sleep(ASKED_AGAIN_AFTER)
            except Refused as failed:
                raise Refused(
                    f"{failed}: GRANT SELECT ON KEYSPACE system_views TO {self.role}"
                    " (deploy/cassandra/roles.cql)"
                ) from failed

    def _one(self, node: str, beans: NodeBeans | None, silent: str | None) -> NodeSnapshot:
        told = self.metrics.of(node)
        gaps = []
        if beans is None:
            gaps.append(f"{node} reports no lightweight transactions by table: {silent}")
        if told.compactions is None:
            gaps.append(f"compactions: GRANT SELECT ON TABLE {COMPACTIONS} TO {self.role}")
        latencies = beans.gauges if beans else {}
        tables = {table: dict(counts) for table, counts in told.tables.items()}
        for table, counts in (beans.tables if beans else {}).items():
            tables.setdefault(table, {}).update(counts)
        return NodeSnapshot(
            node=node,
            started=told.started,
            tables=tables,
            whole=beans.whole if beans else {},
            compactions=told.compactions or {},
            gauges={
                table: replace(latencies.get(table, Gauges()), disk=told.disk.get(table, 0))
                for table in told.tables
            },
            gaps=tuple(gaps),
        )


def measured(
    before: Mapping[str, NodeSnapshot | str], after: Mapping[str, NodeSnapshot | str]
) -> Work:
    """The work of all nodes that answered both times, with a line for each other node.

    Raises `Unreachable` if no node answered both times.
    """
    works: list[Work] = []
    left_out: list[str] = []
    for node in sorted(before.keys() | after.keys()):
        first, second = before.get(node), after.get(node)
        if isinstance(first, NodeSnapshot) and isinstance(second, NodeSnapshot):
            works.append(between(first, second))
        else:
            why = [each for each in (second, first) if isinstance(each, str)]
            left_out.append(why[0] if why else f"{node} is left out: it was not there all the time")
    if not works:
        raise Unreachable("; ".join(left_out))
    return together(works, left_out)


def _shown(metrics: NodeMetrics, settings: Settings) -> Shown:
    keyspace = settings.cassandra.keyspace
    tables = metrics.tables(keyspace)
    if not tables:
        raise Misconfigured(f"there is no keyspace {keyspace}: set cassandra.keyspace")
    try:
        variant = metrics.paxos_variant()
    except Refused:
        variant = "not known"
    return Shown(keyspace, tables, settings.cassandra.own_keyspace, variant)


@contextmanager
def asking(patience: float) -> Iterator[AskNode]:
    """Reads a node by a JVM of ours, within ``patience`` (s).

    Raises `Misconfigured` without Java.
    """
    try:
        jvm = Jvm(patience)
    except Misconfigured as failed:
        yield partial(_without_java, str(failed))
        return
    try:
        yield partial(beans_of, jvm, patience=patience)
    finally:
        jvm.close()


def _without_java(why: str, _login: JmxLogin) -> NodeBeans:
    raise Misconfigured(why)


def _place(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is no place as 10.0.0.1:7199")
    return text
