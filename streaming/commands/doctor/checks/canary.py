"""Canaries: their table exists and is captured, and those of each node are received."""

from __future__ import annotations

from collections.abc import Iterator

from checkpoints.bookmarks import Bookmark
from checkpoints.cassandra import CassandraBookmarks
from checkpoints.clock import now_micros, to_micros, to_seconds
from reconcilers.capture.frontier import CANARY_TABLE, newest_of
from reconcilers.words.model import Micros
from streaming.commands.doctor.checks.capture import turn_on
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, problem, warning
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode
from streaming.tables.canary_schema import add, lacking, one_copy, statements
from streaming.tables.own_keyspace import gap_in
from streaming.tables.replication import is_on_one_node

STALE: Micros = 180_000_000
"""A stream that has recorded nothing for so long does not run: nothing is heard then."""
SLACK: Micros = 60_000_000
"""So much later than usual a canary may come."""
LANES_A_SECOND = 2_000
"""Most canaries that all nodes take each second: one for each node and partition in an interval."""


def canary_table(context: CassandraContext) -> Iterator[Check]:
    """The table exists, has each row on one node, and CDC is on for it."""
    keyspace = context.settings.canary.keyspace
    if not proves(context):
        yield problem(
            f"keyspace {keyspace} keeps more than one copy of a row, or none in a data centre: its"
            " canaries prove nothing, and none is written",
            "an admin sets SimpleStrategy with one copy: --fix; what was judged by them may be"
            " wrong: `reconcile sweep`",
            cql=(one_copy(keyspace),),
        )
    name = f"{keyspace}.{CANARY_TABLE}"
    columns = context.cluster.schema(keyspace).get(CANARY_TABLE)
    if columns is None:
        yield problem(
            f"there is no table {name}: no counter is corrected, and losses are not seen",
            "an admin makes it: --fix",
            cql=statements(keyspace),
        )
    elif missing := lacking(columns):
        yield problem(
            f"table {name} lacks the columns {', '.join(missing)}: no canary is written",
            "an admin adds them: --fix",
            cql=(add(keyspace, missing),),
        )
    elif CANARY_TABLE not in context.cluster.tables_with_cdc(keyspace):
        grace = context.cluster.gc_grace(keyspace)[CANARY_TABLE]
        yield problem(
            f"CDC is off for {name}: no counter is corrected, and losses are not seen",
            "an admin turns it on: --fix",
            cql=turn_on(name, grace),
        )
    else:
        yield fine(f"CDC is on for {name}")


def proves(context: CassandraContext) -> bool:
    """Whether each canary is on one node only; true if their keyspace does not exist yet."""
    replication = context.cluster.replication(context.settings.canary.keyspace)
    return is_on_one_node(replication, context.cluster.data_centres())


def canaries_heard(context: CassandraContext) -> Iterator[Check]:
    """Canaries of each node are received, according to the newest bookmark."""
    settings = context.settings
    store = context.cluster.store(settings.cassandra)
    if gap_in(store, settings.cassandra).todo or not proves(context):
        return
    streams = [StreamNames.of(settings, mode).bookmarks(context.families[0]) for mode in Mode]
    bookmarks = CassandraBookmarks(store)
    told = [found for found in map(bookmarks.newest, streams) if found is not None]
    running = [each for each in told if now_micros() - each.recorded_at < STALE]
    if running:
        yield from heard(context, max(running, key=lambda each: each.recorded_at))


def heard(context: CassandraContext, newest: Bookmark) -> Iterator[Check]:
    """What a stream's newest bookmark stores of each node's canaries."""
    yield from _interval(context.settings.canary.interval, len(newest.heard))
    stream, times = context.settings.stream, newest_of(newest.heard)
    late = to_micros(stream.delay + 2 * stream.window) + SLACK
    for node, address in context.cluster.nodes().items():
        at = times.get(node)
        if at is not None and newest.recorded_at - at <= late:
            yield fine(f"canaries of {address} are received")
            continue
        since = (
            "was ever received"
            if at is None
            else f"was received for {to_seconds(newest.recorded_at - at):.0f} s"
        )
        yield problem(
            f"no canary of {address} {since}: what is captured there is not known",
            "start its agent, or restart it: at times it does not see tables that appeared with"
            " their keyspace; do all agents write to one topic? See deploy/runbook.md",
        )


def _interval(interval: float, lanes: int) -> Iterator[Check]:
    """Whether so many lanes are too many for an interval (s)."""
    least = lanes / LANES_A_SECOND
    if interval < least:
        yield warning(
            f"canaries of {lanes} nodes × partitions each {interval:g} s are more events than they"
            " need to be",
            f"set canary.interval to {least:.1f} or more; 64 partitions of the agents' topic are"
            " enough",
        )
