"""Tables with user-defined types: the agents report what is written there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from checkpoints.clock import now_micros
from reconcilers.declared.unheard import TableHeard
from reconcilers.words.errors import Refused, Retryable
from streaming.commands.doctor.checks.check import Check, KafkaContext, fine, problem
from streaming.monitoring.unheard import UnheardTables
from streaming.tables import logged_in


def unheard_tables(context: KafkaContext) -> Iterator[Check]:
    """One line for each such table that was written lately; Cassandra has lines of its own."""
    settings = context.settings
    topic, keyspace = settings.kafka.topic_prefix, settings.cassandra.keyspace
    if context.watcher.missing([topic]):
        return
    with suppress(Retryable, Refused), logged_in(settings.cassandra) as cluster:
        tables = UnheardTables(cluster.recent_writes(keyspace), context.watcher, keyspace, topic)
        schema = cluster.schema(keyspace)
        yield from map(told, tables.compared(context.families, schema, now_micros()))


def told(heard: TableHeard) -> Check:
    """The line of a table."""
    if not heard.unheard:
        return fine(f"the events of {heard.table} are received")
    return problem(
        f"of {heard.compared} late writes to {heard.table} the events of {heard.unheard} did not"
        " come: an agent that was started before the table existed drops them",
        "restart the agents, then run `reconcile sweep`",
    )
