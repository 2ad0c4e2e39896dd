"""The product's look on the executors of a cluster, at a fake CQL server: what is sent to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pyspark

from reconcilers.declared.family import Family
from streaming.commands.wiring import workers
from streaming.pipeline.worker import Connections
from streaming.settings import Settings
from streaming.tables import connect
from tests.builders.server_looks import connections_at

PACKAGES = ("reconcilers", "checkpoints", "streaming", "tests")


def connected(settings: Settings, family: Family) -> Connections:
    """An executor's connections: James's tables and lineage from the server, the rest in memory."""
    return _connected(settings, workers._ByName(family))


@cache
def _connected(settings: Settings, of: workers._ByName) -> Connections:
    return connections_at(connect(settings.cassandra), settings, of.family)


def places(numbers: Iterable[int]) -> Iterator[tuple[bool, str, str]]:
    """For each task: whether the whole project is there, where ours is from, and PySpark."""
    import reconcilers

    for _ in numbers:
        ours, sparks = reconcilers.__file__, pyspark.__file__
        yield find_spec("deploy") is not None, str(ours), str(Path(str(sparks)).parent)
