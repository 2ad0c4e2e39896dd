"""A sweep that is killed again and again goes on where it was, and finds the same."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraSweeps, Store
from deploy.mailserver.filler import fill
from tests.stack.conftest import Scenes
from tests.stack.pasts import begin_sweep
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="kills")]

MESSAGES, MAILBOXES, RANGES = 4_000, 20, 64
RATE = 100
"""Rows a second: each table takes most of a minute."""
LOST, ORPHANS = 7, 5
TABLES = ("imapuidtable", "messageidtable")


@dataclass
class Swept:
    """A keyspace without a stream, and what its own says of the sweep."""

    scene: Scene

    @property
    def sweeps(self) -> CassandraSweeps:
        return CassandraSweeps(Store(self.scene.session, self.scene.own), self.scene.keyspace)

    def done(self, table: str) -> int:
        """Ranges of a table that are recorded as done."""
        known = self.sweeps.all()
        ranges = self.sweeps.ranges(known[0]) if known else {}
        return sum(each.ranges for (name, _), each in ranges.items() if name == table)

    def has_more(self, table: str, before: int) -> bool:
        """Whether more than these are done."""
        return self.done(table) > before

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return begin_sweep(self.scene, "--mode", "repair", "--rate", str(RATE), *words)


@pytest.fixture
def swept(scenes: Scenes, cassandra: Session) -> Iterator[Swept]:
    for scene in scenes({"sweep": {"ranges": RANGES}, "repair": {"projections": ["messages"]}}):
        scene.stream.stop()
        fill(cassandra, scene.keyspace, MESSAGES, MAILBOXES)
        for _ in range(LOST):
            scene.write_truth(Place(), cells())
        for place in (Place() for _ in range(ORPHANS)):
            scene.write_projection(place, {"messageid": place.messageid, **cells()})
        yield Swept(scene)
        scene.stream.start_watching()


def test_killed_twice_in_each_table_it_finds_the_same_and_reads_no_range_again(
    swept: Swept,
) -> None:
    words: tuple[str, ...] = ()
    for table in TABLES:
        for _ in range(2):
            before = swept.done(table)
            process = swept.begin(*words)
            until(f"more of {table} is done", partial(swept.has_more, table, before))
            os.killpg(process.pid, signal.SIGKILL)
            assert began_at(process.communicate()[1], table) == before
            assert swept.done(table) < RANGES, "it was killed in the middle"
            words = ("--resume",)
    before = swept.done(TABLES[1])
    answer, told = swept.begin(*words).communicate()
    assert [began_at(told, table) for table in TABLES] == [RANGES, before]
    rows = 2 * MESSAGES + LOST + ORPHANS
    assert f"{rows} rows were compared, {LOST + ORPHANS} suspects found" in answer, told


def began_at(told: str, table: str) -> int:
    """How many ranges were done when the command came to a table."""
    first = re.search(rf"^{table}: (\d+) of {RANGES} ranges", told, re.MULTILINE)
    assert first is not None, told
    return int(first[1])
