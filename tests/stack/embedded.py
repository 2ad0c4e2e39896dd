"""The stack of deploy.embedded for tests: started for the run, gone after it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.embedded.spec import Caches, CassandraRelease
from tests.endpoints import Endpoints, Running


@contextmanager
def running_embedded(
    data: Path, release: CassandraRelease, caches: Caches, overlays: tuple[str, ...]
) -> Iterator[Running]:
    """Start Cassandra, Kafka and the agent under `data`; no process of theirs is left behind."""
    from deploy import wake_tables
    from deploy.embedded import Stack, Wanted

    wanted = Wanted(
        release=release,
        tables=wake_tables.TABLES,
        schema=wake_tables.SCHEMA,
        caches=caches,
        overlays=overlays,
    )
    with Stack(data, wanted) as stack:
        yield Running(Endpoints.of(stack.describe()), supervised)


@contextmanager
def running_with_passwords(data: Path) -> Iterator[Endpoints]:
    """The same with authentication, roles and an audit log; the admin is Cassandra's own."""
    from deploy import wake_tables
    from deploy.embedded import ADMIN, Stack, Wanted

    with Stack(
        data, Wanted(admin=ADMIN, tables=wake_tables.TABLES, schema=wake_tables.SCHEMA)
    ) as stack:
        yield Endpoints.of(stack.describe())


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
