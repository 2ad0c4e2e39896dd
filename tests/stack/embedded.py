"""The stack of deploy.embedded for tests: started for the run, gone after it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deploy.embedded.spec import Caches, CassandraRelease, Wanted
from tests.endpoints import Endpoints, Running


@contextmanager
def running_embedded(
    data: Path, release: CassandraRelease, caches: Caches, overlays: tuple[str, ...]
) -> Iterator[Running]:
    """Start Cassandra, Kafka and the agent under `data`; no process of theirs is left behind."""
    from deploy.embedded import Stack

    with Stack(data, wanted(release=release, caches=caches, overlays=overlays)) as stack:
        yield Running(Endpoints.of(stack.describe()), supervised)


def wanted(**more: Any) -> Wanted:
    """A stack that captures what the declared families wake on; ``more`` as in `Wanted`."""
    from deploy import wake_tables

    return Wanted(tables=wake_tables.TABLES, schema=wake_tables.SCHEMA, **more)


def supervised() -> None:
    """Nothing to do for new tables: the stack's supervisor starts the agent again for them."""


def processes_of(data: Path) -> list[str]:
    """The command lines that name the data directory, this test's own process left out."""
    shown = subprocess.run(
        ["ps", "-eo", "pid=,args=", "-ww"], capture_output=True, text=True, check=True
    ).stdout
    return [
        line
        for line in shown.splitlines()
        if str(data) in line and int(line.split()[0]) != os.getpid() and "ps -eo" not in line
    ]
