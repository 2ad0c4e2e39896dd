"""Sweeps of tables that are not as usual: empty, with other columns, with rows that cannot be read.

A keyspace for each; all is written before anything is captured, so that only a sweep can find it.
"""

import os
import pty
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from checkpoints.cassandra import CassandraLineage, Store
from checkpoints.clock import now_micros, to_micros
from reconcilers.words.exit_codes import ExitCode
from streaming.settings import load
from tests.stack.conftest import Scenes
from tests.stack.pasts import QUIET, places, unresolved
from tests.stack.poison import DATES, TOMBSTONES, bury, dates
from tests.stack.scenes import Answer, Cells, Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="sweeps")]

CHANGES: dict[str, dict[str, Any]] = {
    "sweep": {"ranges": 8},
    "repair": {"recheck_interval": 600, "projections": ["messages", "deleted_uids"]},
}


# --- empty tables


@pytest.fixture(scope="module")
def empty(scenes: Scenes) -> Iterator[Scene]:
    for made in scenes(CHANGES):
        # Where nobody has written canaries for long, the first that comes tells of a loss.
        until("canaries come back", partial(made.metric, "reconciler_frontier_timestamp_seconds"))
        until("a sweep makes memory whole", partial(sweeps_count, made))
        yield made


def sweeps_count(scene: Scene) -> bool:
    """Whether memory began so long ago that a sweep which begins now may make it whole."""
    delay = to_micros(load(scene.stream.config, {}).stream.delay)
    watching = CassandraLineage(Store(scene.session, scene.own)).watching()
    return watching is not None and now_micros() > watching.sweeps_count_from(delay)


def test_empty_tables_are_swept(empty: Scene) -> None:
    answer = empty.succeed("sweep")
    assert answer.stdout.startswith("message: 0 rows were compared, 0 suspects found")
    assert "lineage is complete" in answer.stdout
    assert "imapuidtable: 8 of 8 ranges" in answer.stderr
    assert "messageidtable and 1 more: 16 of 16 ranges" in answer.stderr


WITHOUT_UTF_8 = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "TERM": "xterm"}


def swept_with(scene: Scene, **streams: Any) -> subprocess.Popen[bytes]:
    """A sweep whose streams are these; a terminal among them knows ASCII only."""
    command = [sys.executable, "-m", "streaming.app", "sweep"]
    return subprocess.Popen(
        [*command, "--config", str(scene.stream.config)],
        env={**os.environ, **WITHOUT_UTF_8},
        stdin=subprocess.DEVNULL,
        **streams,
    )


def test_a_reader_that_has_gone_is_no_error_of_a_sweep(empty: Scene) -> None:
    with swept_with(empty, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read().decode()
        assert process.wait() == ExitCode.NOBODY_READS, told
    assert "Traceback" not in told


def test_its_bar_is_shown_by_a_terminal_without_utf_8(empty: Scene) -> None:
    ours, its = pty.openpty()
    with swept_with(empty, stdout=its, stderr=its) as process:
        os.close(its)
        shown = b"".join(iter(partial(read_from, ours), b""))
        assert process.wait() == 0, shown
    os.close(ours)
    told = shown.decode("ascii")
    assert "messageidtable" in told
    assert "lineage is complete" in told
    assert "Traceback" not in told


def read_from(terminal: int) -> bytes:
    """What is there, nothing at its end: then Linux tells of an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


# --- other columns than this version knows


@dataclass
class Altered:
    """Tables of another James, and messages that differ in what he has added, or elsewhere."""

    scene: Scene
    right: Place = field(default_factory=Place)
    newer: Place = field(default_factory=Place)
    missing: Place = field(default_factory=Place)
    stale: Place = field(default_factory=Place)

    def write(self) -> "Altered":
        """``save_date`` is newer than the listing, ``threadid`` than both tables.

        Both have a column that is newer than this version, and each has one that the other lacks.
        """
        self.alter("$projection", "DROP save_date", "DROP threadid", "ADD newer text")
        self.alter("$projection", "ADD listed_only map<text, text>")
        self.alter("$truth", "DROP threadid", "ADD newer text")
        self.alter("$truth", "ADD truth_only map<text, text>")
        for place in (self.right, self.newer, self.missing, self.stale):
            self.scene.write_truth(place, self._cells("threadid"))
        for place in (self.right, self.newer, self.stale):
            listed = {"messageid": place.messageid, **self._cells("threadid", "save_date")}
            self.scene.write_projection(place, listed)
        self.scene.write_projection(self.newer, {"newer": "other"})
        self.scene.write_projection(self.stale, {"flagflagged": True})
        return self

    def alter(self, table: str, *changes: str) -> None:
        for change in changes:
            self.scene.execute(f"ALTER TABLE {table} {change}")

    @staticmethod
    def _cells(*lacking: str) -> Cells:
        told = cells(newer="same", **QUIET)
        return {name: value for name, value in told.items() if name not in lacking}

    def agrees(self, place: Place) -> bool:
        """Whether what both tables can hold is alike."""
        names = ", ".join(self._cells("threadid", "save_date", "userflags"))
        where = "mailboxid = %s AND uid = %s"
        truth = self.scene.execute(
            f"SELECT messageid, {names} FROM $truth WHERE messageid = %s AND {where}",
            place.messageid,
            *place.row,
        ).one()
        listed = self.scene.execute(
            f"SELECT messageid, {names} FROM $projection WHERE {where}", *place.row
        ).one()
        return truth is not None and truth == listed

    def written(self, place: Place) -> int:
        """When the newer cell of the listing was written (µs)."""
        row = self.scene.execute(
            "SELECT writetime(newer) AS at FROM $projection WHERE mailboxid = %s AND uid = %s",
            *place.row,
        ).one()
        return int(row.at)


@pytest.fixture(scope="module")
def altered(scenes: Scenes, mail_keyspace: str) -> Iterator[Altered]:
    yield from scenes.over(lambda scene: Altered(scene).write(), CHANGES)


def test_a_newer_column_is_compared_and_one_that_a_table_lacks_is_not(altered: Altered) -> None:
    before = altered.written(altered.right)
    answer = altered.scene.succeed("sweep")
    assert "messages: missing_row: 1 seen: 1 repaired" in answer.stdout
    assert "messages: differing_cells: 2 seen: 2 repaired" in answer.stdout
    for place in (altered.newer, altered.missing, altered.stale):
        until(f"{place} agrees", partial(altered.agrees, place))
    assert altered.written(altered.right) == before


def test_a_column_that_no_version_can_copy_is_told_in_a_line(altered: Altered) -> None:
    for table in ("$truth", "$projection"):
        altered.alter(table, "ADD both_have map<text, text>")
    told = altered.scene.refuse("sweep")
    for table in ("$truth", "$projection"):
        altered.alter(table, "DROP both_have")
    assert "both_have is of type map<text, text>" in told


# --- rows that cannot be read


@dataclass
class Poisoned:
    """Rows with a date that is none, and partitions with more tombstones than a node reads.

    ``beside`` is missing in such a mailbox, ``named`` listed and of a message of that kind.
    """

    scene: Scene
    right: dict[str, Place] = field(default_factory=lambda: {name: Place() for name in DATES})
    missing: dict[str, Place] = field(default_factory=lambda: {name: Place() for name in DATES})
    differing: dict[str, Place] = field(default_factory=lambda: {name: Place() for name in DATES})
    beside: Place = field(default_factory=lambda: Place(uid=TOMBSTONES + 1))
    named: Place = field(default_factory=lambda: Place(uid=TOMBSTONES + 1))
    healthy: list[Place] = field(default_factory=lambda: places(20))

    def write(self) -> "Poisoned":
        """All of it."""
        scene = self.scene
        for name, date in DATES.items():
            dated = cells(internaldate=date, save_date=date, **QUIET)
            scene.write_both(self.right[name], dated)
            scene.write_truth(self.missing[name], dated)
            scene.write_both(self.differing[name], dated)
            scene.write_projection(self.differing[name], {"internaldate": date - 1})
        bury(scene, "$projection", mailboxid=self.beside.mailboxid)
        bury(scene, "$truth", messageid=self.named.messageid, mailboxid=uuid.uuid1())
        scene.write_projection(self.named, {"messageid": self.named.messageid, **cells(**QUIET)})
        for place in (self.beside, *self.healthy):
            scene.write_truth(place, cells(**QUIET))
        return self


@pytest.fixture(scope="module")
def poisoned(scenes: Scenes, mail_keyspace: str) -> Iterator[Poisoned]:
    yield from scenes.over(lambda scene: Poisoned(scene).write(), CHANGES)


@pytest.fixture(scope="module")
def swept(poisoned: Poisoned) -> Answer:
    """A sweep of it, with what it said."""
    return poisoned.scene.command("sweep")


def test_what_cannot_be_read_is_told_and_memory_is_not_whole(
    poisoned: Poisoned, swept: Answer
) -> None:
    assert swept.returncode == 1, swept.stdout + swept.stderr
    for table in ("imapuidtable", "messageidtable"):
        lines = [each for each in swept.stdout.splitlines() if f"not read: {table}, " in each]
        assert len(lines) == 1, swept.stdout
    assert "lineage is not complete: 1 ranges of tokens cannot be read" in swept.stdout


def test_everything_beside_it_is_compared_and_repaired(poisoned: Poisoned, swept: Answer) -> None:
    scene = poisoned.scene
    for place in (poisoned.beside, *poisoned.healthy):
        until(f"{place} agrees", partial(scene.agrees, place))
    for name, date in DATES.items():
        for place in (poisoned.missing[name], poisoned.differing[name]):
            scene.await_verified(place.row)
            assert dates(scene, place) == (date, date)
        assert scene.findings(poisoned.right[name].row) == []


def test_a_row_of_a_message_that_cannot_be_read_is_a_finding_and_stays(
    poisoned: Poisoned, swept: Answer
) -> None:
    poisoned.scene.reported(poisoned.named.row, "unreadable")
    assert not poisoned.scene.lacks(poisoned.named.row)
    assert unresolved(poisoned.scene) == []
