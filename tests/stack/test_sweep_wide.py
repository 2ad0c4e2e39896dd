"""Tokens that are far from even: a mailbox of 100,000 messages, a message in 2,000 mailboxes.

Nearly all messages lie in one quarter of the ring. A sweep goes through them in the memory that
others take, holds up no repair of the stream meanwhile, and is killed in the midst of them.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from cassandra.metadata import Murmur3Token

from tests.processes import CpuWatch
from tests.stack.conftest import Scenes
from tests.stack.pasts import QUIET, begin_sweep, swept
from tests.stack.scenes import Place, Scene, cells, insertion
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="sweeps")]

MESSAGES, COPIES, WRONG = 100_000, 2_000, 10
RANGES = 2
"""So the first round has all of a table under way."""
FIRST_QUARTER = -(2**63) + 2**62
"""Tokens below it are a quarter of the ring."""
SLOWLY = 50
"""Rows a second: at this rate the large mailbox takes more than half an hour."""
MIB_MORE = 60.0
"""A worker that held 100,000 rows more would need several times that."""
TABLES = ("imapuidtable", "messageidtable")


@dataclass
class Wide:
    """The mailbox and the copied message, with those that went wrong, by how they did."""

    scene: Scene
    missing: list[Place] = field(default_factory=list)
    stale: list[Place] = field(default_factory=list)

    def fill(self) -> Wide:
        """All rows, both sides; then some are damaged."""
        mailbox, copied = uuid.uuid1(), Place()
        large = [
            Place(messageid, mailbox, uid)
            for uid, messageid in enumerate(crowded(MESSAGES), start=1)
        ]
        copies = [replace(copied, mailboxid=each) for each in time_based(COPIES)]
        self._write([*large, *copies])
        for places in (large, copies):
            every = len(places) // (2 * WRONG)
            chosen = places[every - 1 :: every]
            self.missing += chosen[::2]
            self.stale += chosen[1::2]
        for place in self.missing:
            self.scene.delete_projection(place)
        for place in self.stale:
            self.scene.write_projection(place, {"flagflagged": True})
        return self

    def _write(self, places: list[Place]) -> None:
        values = {name: value for name, value in cells(**QUIET).items() if name != "userflags"}
        rows = [(*place.ids.values(), *values.values()) for place in places]
        for table in ("$truth", "$projection"):
            self.scene.execute_many(insertion(table, [*places[0].ids, *values]), rows)

    def wrong(self) -> list[Place]:
        """Those that are still wrong."""
        return [each for each in (*self.missing, *self.stale) if not self.scene.agrees(each)]


def crowded(number: int) -> Iterator[UUID]:
    """So many ids whose tokens lie in the first quarter of the ring."""
    found = 0
    for each in time_based(8 * number):
        if Murmur3Token.hash_fn(each.bytes) < FIRST_QUARTER:
            yield each
            found += 1
        if found == number:
            return
    raise AssertionError("too few of the ids lie there")


def time_based(number: int) -> Iterator[UUID]:
    """So many ids of now, of as many machines."""
    chance, now = random.Random(5), uuid.uuid1().fields
    for node in chance.sample(range(2**48), number):
        yield UUID(fields=(*now[:5], node))


@pytest.fixture(scope="module")
def wide(scenes: Scenes, mail_keyspace: str) -> Iterator[Wide]:
    changes: dict[str, dict[str, Any]] = {
        "sweep": {"ranges": RANGES, "rows_per_second": 1_000_000},
        "repair": {"recheck_interval": 600},
    }
    yield from scenes.over(lambda scene: Wide(scene).fill(), changes)


@dataclass
class Sweep:
    """A sweep as a process, and the MiB of its largest worker."""

    process: subprocess.Popen[str]
    watch: CpuWatch

    def await_table(self, table: str) -> None:
        """Until it comes to this table."""
        assert self.process.stderr is not None
        told = []
        for line in self.process.stderr:
            told.append(line)
            if re.match(rf"{table}( and \d+ more)?: ", line):
                return
        raise AssertionError(f"it has ended:\n{''.join(told)}")

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def end(self) -> tuple[int, str]:
        """Its exit code and what it said, once it has ended unexpectedly."""
        out, error = self.process.communicate()
        return self.process.returncode, out + error


@contextmanager
def sweep(wide: Wide, *words: str) -> Iterator[Sweep]:
    """Begun; killed with -9 at the end of the block, if it is there still."""
    process = begin_sweep(wide.scene, *words)
    with process, CpuWatch({}, process.pid) as watch:
        try:
            yield Sweep(process, watch)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def test_a_wide_partition_takes_no_more_memory_and_holds_up_nothing(wide: Wide) -> None:
    with sweep(wide) as first:
        first.await_table(TABLES[1])
        narrow = first.watch.rss  # each partition of the truth was a message's
    missing = Place()
    with sweep(wide, "--resume", "--rate", str(SLOWLY)) as second:
        second.await_table(TABLES[1])
        wide.scene.write_truth(missing, cells())
        until("the stream repairs beside it", partial(wide.scene.agrees, missing))
        assert second.runs
    with sweep(wide, "--resume") as last:
        code, told = last.end()
        assert code == 0, told
        assert last.watch.rss - narrow < MIB_MORE
    assert f"{TABLES[0]}: {RANGES} of {RANGES} ranges" in told
    assert "lineage is complete" in told


def test_what_is_wrong_there_is_repaired(wide: Wide) -> None:
    until("it is repaired", lambda: not wide.wrong())


def test_the_next_sweep_finds_all_of_it_right(wide: Wide) -> None:
    wide.scene.await_all_examined()
    assert " 0 suspects found" in swept(wide.scene).stdout
