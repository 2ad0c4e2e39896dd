"""The product's look on the executors of a cluster, at a fake CQL server: what is sent to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pyspark

from checkpoints.cassandra import CassandraLineage, Store
from reconcilers.declared.family import Family, Projection
from streaming.commands.wiring import workers
from streaming.monitoring.clocks import ClockWatch
from streaming.pipeline.worker import Connections, Job
from streaming.settings import Settings
from streaming.steps.examine import Examiner
from streaming.tables import Nodes, Tables, connect
from tests.builders.permits import unpaused
from tests.fakes.checkpoints.memory import MemoryExpiries, MemoryJournal
from tests.fakes.checkpoints.tallies import MemoryTallies

PACKAGES = ("reconcilers", "checkpoints", "streaming", "tests")


def connected(settings: Settings, family: Family) -> Connections:
    """An executor's connections: James's tables and lineage from the server, the rest in memory."""
    return _connected(settings, workers._ByName(family))


@cache
def _connected(settings: Settings, of: workers._ByName) -> Connections:
    session, family = connect(settings.cassandra), of.family
    tables = Tables(session, settings.cassandra, family)
    return Connections(
        tables,
        CassandraLineage(Store(session, settings.cassandra.own_keyspace), family),
        MemoryJournal(),
        MemoryExpiries(),
        MemoryTallies(),
        ClockWatch(Nodes(session), settings.stream.delay),
        unpaused(),
        workers._glance(settings, tables, family),
    )


def no_examiner(_job: Job, _projection: Projection) -> Examiner:
    """A look examines nothing."""
    raise AssertionError("a look examines nothing")


def places(numbers: Iterable[int]) -> Iterator[tuple[bool, str, str]]:
    """For each task: whether the whole project is there, where ours is from, and PySpark."""
    import reconcilers

    for _ in numbers:
        ours, sparks = reconcilers.__file__, pyspark.__file__
        yield find_spec("deploy") is not None, str(ours), str(Path(str(sparks)).parent)
