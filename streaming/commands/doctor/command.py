"""``reconcile doctor``: checks the installation, and says what to do about each problem.

``--fix`` prints what an admin has to run, or runs it with an admin's credentials. ``--off`` ends
change capture in the one order that loses nothing.
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from reconcilers.words.errors import Misconfigured, OtherSchema, ReconcilerError, Refused, Retryable
from streaming.commands.arguments.logins import login_of
from streaming.commands.arguments.output import TABLE, add_format, formatted
from streaming.commands.doctor.checks import ON_CASSANDRA, ON_KAFKA
from streaming.commands.doctor.checks.check import COLUMNS, Check, KafkaContext, Level, problem, row
from streaming.commands.doctor.checks.quotas import context_of
from streaming.settings import CassandraSettings, Settings
from streaming.tables import Cluster, logged_in
from streaming.tables.own_keyspace import end_memory_of, finish, refuse_another
from streaming.topics import TOPIC_SETTINGS, Watcher

POLL_SECONDS = 2.0

S = TypeVar("S")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile doctor [--fix | --off]``."""
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--fix", action="store_true", help="print what an admin must run, or run it")
    does.add_argument("--off", action="store_true", help="the way out: print it, or go it")
    parser.add_argument("--admin-username", metavar="U", help="for --fix and --off: run it as U")
    parser.add_argument("--admin-password-file", type=Path, metavar="F", help="holds U's password")
    parser.add_argument(
        "--wait",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="how long --off waits for cdc_raw to empty (600)",
    )
    add_format(parser)
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Check; fix or switch off if asked. Returns 1 if there is a problem.

    Raises `OtherSchema` if another version of the product made our keyspace, `Misconfigured` if it
    belongs to another installation.
    """
    admin = _admin(settings.cassandra, arguments)
    if arguments.format != TABLE and (arguments.fix or arguments.off):
        raise Misconfigured("--format is of the checks alone: leave out --fix and --off")
    _refuse_another(settings.cassandra)
    if arguments.off:
        return _off(settings, admin, arguments.wait)
    found = _shown(examine(settings), arguments.format)
    if arguments.fix and admin is None:
        _print_fixes(settings, found)
    elif arguments.fix and admin is not None and _carried_out(settings, admin, found):
        found = _shown(examine(settings))
    return int(any(check.level is Level.PROBLEM for check in found))


def _refuse_another(settings: CassandraSettings) -> None:
    """Refuse before anything is changed. What cannot be asked here, the checks report."""
    with suppress(Retryable, Refused), logged_in(settings) as cluster:
        refuse_another(cluster.store(settings), settings)


def examine(settings: Settings) -> Iterator[Check]:
    """Every check, Cassandra's first. An unreachable server is a problem and ends its part."""
    try:
        with logged_in(settings.cassandra) as cluster:
            yield from _each(ON_CASSANDRA, context_of(settings, cluster))
    except OtherSchema:
        raise
    except ReconcilerError as failed:
        yield problem(str(failed), "is it up; are cassandra.hosts, port, username, password right?")
    try:
        watcher = Watcher(settings.kafka)
    except ReconcilerError as failed:
        yield problem(str(failed), "start it, or correct the setting")
        return
    with closing(watcher):
        yield from _each(ON_KAFKA, KafkaContext(settings, settings.families(), watcher))


def _each(checks: Iterable[Callable[[S], Iterator[Check]]], context: S) -> Iterator[Check]:
    """The lines of each check; a check that fails does not stop the others."""
    for check in checks:
        try:
            yield from check(context)
        except OtherSchema:
            raise
        except ReconcilerError as failed:
            yield problem(str(failed), "could not be checked; try again")


def _shown(checks: Iterable[Check], form: str = TABLE) -> list[Check]:
    """Print each check as soon as it ends; returns all."""
    shown: list[Check] = []

    def each() -> Iterator[Check]:
        for check in checks:
            shown.append(check)
            yield check

    told = map(str, each()) if form == TABLE else formatted(form, map(row, each()), COLUMNS)
    for line in told:
        print(line, flush=True)
    return shown


def _admin(settings: CassandraSettings, arguments: argparse.Namespace) -> CassandraSettings | None:
    """The settings with the admin's credentials; None if none were given."""
    options = "--admin-username and --admin-password-file"
    file = arguments.admin_password_file
    admin = login_of(settings, arguments.admin_username, file, options)
    if admin is not None and not (arguments.fix or arguments.off):
        raise Misconfigured("an admin's credentials are for --fix or --off")
    return admin


# --- --fix ----------------------------------------------------------------------------------------


def _print_fixes(settings: Settings, found: list[Check]) -> None:
    """Print what an admin has to run, ready to paste."""
    statements = [statement for check in found for statement in check.cql]
    topics = [topic for check in found for topic in check.topics]
    if statements:
        print("\n-- in cqlsh, as an admin (or give --admin-username and --admin-password-file):")
    for statement in statements:
        print(f"{statement};")
    if topics:
        print("\n# topics to create; with three brokers or more, add --replication-factor 3")
        print("# and --config min.insync.replicas=2:")
    configs = " ".join(f"--config {name}={value}" for name, value in TOPIC_SETTINGS.items())
    servers = shlex.quote(settings.kafka.bootstrap_servers)
    for topic in topics:
        events = topic == settings.kafka.topic_prefix
        number = f" --partitions {settings.kafka.partitions}" if events else ""
        print(
            f"kafka-topics.sh --bootstrap-server {servers} --create --if-not-exists"
            f" --topic {shlex.quote(topic)}{number} {configs}"
        )


def _carried_out(settings: Settings, admin: CassandraSettings, found: list[Check]) -> bool:
    """Run what the checks ask for; returns whether there was anything.

    Raises at the first refusal.
    """
    own = [check for check in found if check.own_keyspace]
    statements = [cql for check in found if check not in own for cql in check.cql]
    topics = [topic for check in found for topic in check.topics]
    if own or statements:
        with logged_in(admin) as cluster:
            if own:
                finish(cluster.store(admin), admin, lambda line: print(f"done     {line}"))
            watched = _watched(settings, cluster.schema(admin.keyspace))
            _end_memory(cluster, admin, watched - _captured(settings, cluster))
            _run(cluster, statements)
    if topics:
        with closing(Watcher(settings.kafka)) as watcher:
            watcher.create(topics)
        print(f"done     created {', '.join(topics)}")
    return bool(own or statements or topics)


def _run(cluster: Cluster, statements: Iterable[str]) -> None:
    for statement in statements:
        cluster.run(statement)
        print(f"done     {' '.join(statement.split())}", flush=True)


def _watched(settings: Settings, there: Container[str]) -> set[str]:
    """The watched tables that exist."""
    watched = (table for family in settings.families() for table in family.wakes_on)
    return {table for table in watched if table in there}


def _captured(settings: Settings, cluster: Cluster) -> frozenset[str]:
    """The tables of James's keyspace with change capture on."""
    return cluster.tables_with_cdc(settings.cassandra.keyspace)


def _end_memory(cluster: Cluster, settings: CassandraSettings, off: set[str]) -> None:
    """End lineage here, since the next stream would take it for complete."""
    if not off:
        return
    try:
        ended = end_memory_of(cluster.store(settings), off, "change capture is turned off or on")
    except Refused as refused:
        print(
            f"look     lineage could not be reset: {refused}; where a stream has run before, start"
            " the next one with --events-lost"
        )
        return
    if ended:
        print("done     lineage is reset: it begins again with the stream", flush=True)


# --- --off ----------------------------------------------------------------------------------------


def _off(settings: Settings, admin: CassandraSettings | None, wait: float) -> int:
    """Turn CDC off, let the agents empty cdc_raw, then stop them: this order loses nothing."""
    with logged_in(admin or settings.cassandra) as cluster:
        keyspace, now = settings.cassandra.keyspace, _captured(settings, cluster)
        watched = _watched(settings, now)
        off = [f"{keyspace}.{each}" for each in sorted(watched)]
        canaries = settings.canary.keyspace
        off += [f"{canaries}.{each}" for each in cluster.tables_with_cdc(canaries)]
        statements = [f"ALTER TABLE {each} WITH cdc = false" for each in off]
        places = _cdc_raw(cluster)
        if admin is None:
            _print_way_out(statements, places)
            return 0
        _end_memory(cluster, admin, watched)
        _run(cluster, statements)
    print("next     on each node: nodetool flush")
    empty = [_emptied(node, directory, wait) for node, directory in places.items()]
    if not places or not all(empty):
        print("then     wait until each cdc_raw holds no more than the newest segment")
    print("last     stop the agents; then set cdc_enabled: false, if nothing else uses it")
    return int(not all(empty))


def _cdc_raw(cluster: Cluster) -> dict[str, str]:
    """The directory of each node; empty if the role may not read it."""
    try:
        told = cluster.node_settings(("cdc_raw_directory",))
    except ReconcilerError:
        return {}
    return {node: values.get("cdc_raw_directory", "cdc_raw") for node, values in told.items()}


def _print_way_out(statements: list[str], places: dict[str, str]) -> None:
    where = ", ".join(f"{node}:{directory}" for node, directory in places.items()) or "cdc_raw"
    print("-- 1. in cqlsh, as an admin (or give --admin-username and --admin-password-file):")
    for statement in statements or ["-- CDC is off for every table already"]:
        print(statement if statement.startswith("--") else f"{statement};")
    print(f"-- 2. on each node: nodetool flush, then wait until it is empty: {where}")
    print("--    (the newest segment stays while Cassandra writes to it)")
    print("-- 3. stop the agents; then set cdc_enabled: false, if nothing else uses it")


def _emptied(node: str, directory: str, wait: float) -> bool:
    """Wait for a directory on this machine; returns whether only the newest segment is left."""
    if not Path(directory).is_dir():
        print(f"look     {node}:{directory} is not on this machine")
        return False
    until = time.monotonic() + wait
    while left := unread_segments(Path(directory)):
        if time.monotonic() > until:
            print(f"problem  {directory} still holds {', '.join(left)} — does the agent run?")
            return False
        time.sleep(min(POLL_SECONDS, wait))
    print(f"done     {directory} of {node} is empty")
    return True


def unread_segments(directory: Path) -> list[str]:
    """The captured segments that the agent has not moved away yet.

    Cassandra writes ``<segment>_cdc.idx`` beside a segment once it holds a captured change, and
    adds COMPLETED at its end. Until then the newest segment is read while it is written.
    """
    indexes = sorted(directory.glob("*_cdc.idx"))
    return [each.name for each in indexes if each is not indexes[-1] or _completed(each)]


def _completed(index: Path) -> bool:
    try:
        return "COMPLETED" in index.read_text(encoding="utf-8")
    except FileNotFoundError:  # the agent has just moved it away
        return False
