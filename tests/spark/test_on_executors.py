"""A sweep's fingerprints that Spark keeps: each scan gets those of its ranges, wherever it runs."""

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from reconcilers.declared.family import Family, Projection
from reconcilers.declared.raw import RawCell, RawRow
from reconcilers.rows.memory import Entry
from reconcilers.words.model import Slot
from reconcilers.words.tokens import TokenRange
from streaming.again import on_executors
from streaming.again.fingerprints import CarriedFingerprints, as_sorted
from streaming.again.on_executors import OnExecutors
from streaming.again.pieces import Piece, SweptPiece
from streaming.again.progress import LoggedProgress
from streaming.again.rounds import SweepRounds
from streaming.again.scan import Scanning
from streaming.again.workers import Tasks, on_workers
from streaming.pipeline.worker import Job
from streaming.settings import Settings, StreamSettings
from tests.builders.glances import glance_of
from tests.builders.rows import COMPLETE, FAMILY, SCHEMA
from tests.fakes.checkpoints.memory import MemoryExpiries, MemoryLineage
from tests.fakes.checkpoints.tallies import MemoryTallies
from tests.fakes.no_past import nothing_past
from tests.fakes.raw_tables import RawMemoryLineage, RawMemoryTables, shape_of

MESSAGES, MAILBOXES, RANGES, PAGE = 600, 40, 16, 50
TRUTH, LISTING = FAMILY.truth.table, FAMILY.listing.table
NOTHING: Any = None


def ids(number: int) -> UUID:
    return UUID(f"{number:08}-0000-1000-8000-000000000001")


@dataclass
class ToldTables(RawMemoryTables):
    """Each table that is asked for rows is a line of a file, for the test in another process."""

    told: Path = Path()

    def _read(self, table: str, *of: Any) -> Iterator[RawRow]:
        with self.told.open("a") as file:
            file.write(f"{table}\n")
        return super()._read(table, *of)


@cache
def tables_of(told: Path) -> tuple[ToldTables, MemoryLineage]:
    """Messages of many mailboxes, which are right, and remembered."""
    tables, lineage = ToldTables(FAMILY, SCHEMA, told=told), MemoryLineage()
    for uid in range(1, MESSAGES + 1):
        mailbox = ids(1_000_000 + uid % MAILBOXES)
        message = {**COMPLETE, "messageid": ids(uid), "mailboxid": mailbox, "uid": uid}
        for table in (TRUTH, LISTING):
            tables.put(table, **message)
        lineage.remember([Entry(ids(uid), Slot(mailbox, uid), in_truth=True, recorded_at=1)])
    return tables, lineage


def connected(settings: Settings, _family: Family) -> Any:
    return connections_of(Path(str(settings.stream.temp_dir)))


@cache
def connections_of(told: Path) -> Any:
    tables, lineage = tables_of(told)
    glance = glance_of(FAMILY, tables, RawMemoryLineage(FAMILY, lineage)).glance
    return SimpleNamespace(
        glance=glance,
        lineage=lineage,
        tallies=MemoryTallies(),
        tables=NOTHING,
        expiries=MemoryExpiries(),
        share=lambda _tasks: None,
    )


def not_examined(_job: Job, _projection: Projection) -> Any:
    raise AssertionError


class Scans:
    """Each row, in the order of tokens, which are spread over the ring."""

    def __init__(self, job: Job) -> None:
        self._tables, _ = tables_of(Path(str(job.settings.stream.temp_dir)))

    def pages(self, table: str, tokens: TokenRange, _most: int) -> Iterator[list[RawRow]]:
        shape = shape_of(FAMILY)
        columns, at = (shape.truth, shape.source[0]) if table == TRUTH else (shape.listing, 0)
        rows = [tuple(row.get(name) for name in columns) for row in self._tables.rows[table]]
        within = [row for row in rows if tokens.after < self.token(row[at]) <= tokens.until]
        within.sort(key=lambda row: self.token(row[at]))
        for start in range(0, len(within), PAGE):
            yield within[start : start + PAGE]

    def token(self, partition: RawCell) -> int:
        hashed = blake2b(partition or b"", digest_size=8).digest()
        return int.from_bytes(hashed, "big", signed=True)


@dataclass
class Swept:
    """A sweep of these tables on Spark; ``told`` has a line for each read beside the scans."""

    spark: SparkSession
    told: Path
    rows: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settings = Settings(stream=StreamSettings(temp_dir=self.told))
        job = Job(settings, FAMILY, "", connected, not_examined)
        none = CarriedFingerprints(RANGES, as_sorted(b""))
        self.scans = OnExecutors(Scanning(job, Scans, nothing_past, none, none))
        scan = on_workers(self.spark, self.scans)
        self.rounds = SweepRounds(scan, LoggedProgress(), lambda _s: None, lambda: 1, fewest=300)

    def ahead(self) -> None:
        self.rounds.read_ahead(LISTING, RANGES, "ahead")

    def read(self, table: str) -> None:
        """Scan a table whole."""

        def take(good: Any) -> None:
            self.rows[table] = self.rows.get(table, 0) + sum(each.rows for each in good)

        self.rounds.read({table: range(RANGES)}, RANGES, take, lambda _table: None)

    @property
    def asked(self) -> list[str]:
        """The tables that were asked for rows since the last call."""
        if not self.told.exists():
            return []
        found = self.told.read_text().splitlines()
        self.told.unlink()
        return found


@pytest.fixture
def swept(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Swept:
    monkeypatch.setattr(on_executors, "ROWS_A_PART", 150)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", sys.executable)
    return Swept(spark, tmp_path / "told")


def test_what_is_read_ahead_spares_the_scans_of_both_tables_all_other_reads(swept: Swept) -> None:
    swept.ahead()
    assert TRUTH not in swept.asked
    swept.read(TRUTH)
    swept.read(LISTING)
    assert swept.asked == []
    assert swept.rows == {TRUTH: MESSAGES, LISTING: MESSAGES}


def test_a_look_at_the_truth_spares_the_listing_reads(swept: Swept) -> None:
    swept.read(TRUTH)
    assert LISTING in swept.asked
    swept.read(LISTING)
    assert swept.asked == []
    assert swept.rows == {TRUTH: MESSAGES, LISTING: MESSAGES}


def test_lost_blocks_are_told_in_one_line_and_cost_reads_only(
    swept: Swept, caplog: pytest.LogCaptureFixture
) -> None:
    swept.ahead()
    for each in swept.scans._left[TRUTH]:
        each.unpersist(blocking=True)  # as if their executors were lost
    with caplog.at_level(logging.WARNING, "reconciler"):
        swept.read(TRUTH)
    warned = [each for each in caplog.records if each.levelno >= logging.WARNING]
    lines = [each.message for each in warned if each.name == "reconciler"]
    assert lines == ["the sweep takes longer: an executor was lost, and fingerprints with it"]
    assert LISTING in swept.asked
    assert swept.rows == {TRUTH: MESSAGES}


def test_a_piece_ends_with_the_part_that_its_task_has(swept: Swept) -> None:
    swept.ahead()
    whole = [Piece(TRUTH, range(RANGES), RANGES, 10 * MESSAGES)]
    (found,) = swept.scans(swept.spark.sparkContext, whole, Tasks(1, 1))
    assert isinstance(found, SweptPiece)
    assert found.piece.numbers == range(RANGES // 4), "600 rows are four parts"
