"""The product's look at a CQL server, with everything else in memory; executors can import it."""

from __future__ import annotations

from typing import Any

from checkpoints.cassandra import CassandraLineage, Store
from reconcilers.declared.family import Family, Projection
from streaming.commands.wiring import workers
from streaming.monitoring.clocks import ClockWatch
from streaming.pipeline.worker import Connections, Job
from streaming.settings import Settings
from streaming.steps.examine import Examiner
from streaming.tables import Nodes, Tables
from tests.builders.permits import unpaused
from tests.fakes.checkpoints.memory import MemoryExpiries, MemoryJournal
from tests.fakes.checkpoints.tallies import MemoryTallies


def connections_at(session: Any, settings: Settings, family: Family) -> Connections:
    """James's tables and lineage from the server of a session, the rest in memory."""
    tables = Tables(session, settings.cassandra, family)
    return Connections(
        tables,
        CassandraLineage(Store(session, settings.cassandra.own_keyspace), family),
        MemoryJournal(),
        MemoryExpiries(),
        MemoryTallies(),
        ClockWatch(Nodes(session), settings.stream.delay),
        unpaused(),
        workers.glance_of(settings, tables, family),
    )


def no_examiner(_job: Job, _projection: Projection) -> Examiner:
    """A look examines nothing."""
    raise AssertionError("a look examines nothing")
