"""How long a sweep of a small installation takes, alone and on a busy machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cassandra.cluster import Session

from tests.bench.report import publish, table
from tests.bench.test_sweep import BOTH_TABLES, filled
from tests.endpoints import Running

pytestmark = pytest.mark.bench

ROWS, LOOPS = 2_000, 4


def test_a_small_sweep_beside_busy_loops(
    running: Running, cassandra: Session, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, messages = tmp_path_factory.mktemp("small"), ROWS // BOTH_TABLES
    with filled(running.endpoints, cassandra, folder, messages) as swept:
        told = []
        for name, loops in (("the first", 0), ("the next", 0), ("the next, busy", LOOPS)):
            with busy(loops):
                told.append((name, loops, swept.sweep().seconds))
    publish(
        "A sweep of a small installation",
        f"{ROWS:,} rows in both tables, which agree; wall time from the begin of the first table,"
        f" when Spark has started, to the end of the last. Aim: 30 s beside {LOOPS} busy loops."
        " The ranges and queries are counted by `tests/unit/sweep/test_sweep_sizes.py`.",
        table(("sweep", "busy loops", "seconds"), told),
    )


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that do nothing but use a core."""
    begun = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for each in begun:
            each.kill()
            each.wait()
