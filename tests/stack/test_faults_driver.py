"""kill -9 of the driver at every step: the next goes on after what is settled, nothing doubled."""

from pathlib import Path

import pytest

from tests.stack.sabotage import sabotage
from tests.stack.streams import until
from tests.stack.watched import SLOW, Restarted

pytestmark = pytest.mark.stack

LOOK = "streaming.steps.look:Look.at"
JOURNAL = "checkpoints.cassandra.journal:CassandraJournal"
REPAIR = "streaming.tables.tables:Tables.apply"
BATCH = "streaming.pipeline.batches:Batches"

MAIN_POINTS = (
    f"before {LOOK}",
    f"after {LOOK}",
    f"after {JOURNAL}.put",
    f"after {REPAIR}",
)
"""Before look, between look and journal, between journal and repair, after the repair."""

MORE_POINTS = (
    "after checkpoints.cassandra.lineage:CassandraLineage.remember_deletes",
    "after checkpoints.cassandra.lineage:CassandraLineage.remember",
    f"after {BATCH}.admit",
    "before streaming.steps.confirm:Confirmer.read",
    f"before {JOURNAL}.put",
    f"before {REPAIR}",
    "before streaming.steps.examine:Examiner.examine",
    "after streaming.steps.examine:Examiner.examine",
    f"before {BATCH}.record_outcomes",
    f"before {BATCH}.ended",
    "after checkpoints.cassandra.bookmarks:CassandraBookmarks.record",
    f"after {BATCH}.ended",
    f"before {JOURNAL}.close",
    f"after {JOURNAL}.close",
)


def die_at(restarted: Restarted, point: str, done: Path) -> None:
    """Start the stream, and wait until it has died at this point."""
    stream = restarted.stream
    stream.environment = sabotage(point, done)
    stream.start()
    until(f"the driver dies {point}", lambda: stream.died() is not None, SLOW)
    stream.kill()
    assert done.exists(), f"it died by itself, not {point}:\n{stream.log.read_text()[-2000:]}"


def survives(restarted: Restarted, points: tuple[str, ...], folder: Path) -> None:
    """Differences of every kind before each death; in the last life, only a batch fails."""
    stream = restarted.stream
    for number, point in enumerate(points):
        restarted.plant()
        die_at(restarted, point, folder / f"died-{number}")
    restarted.plant()
    timed_out = folder / "timed-out"
    stream.environment = sabotage(f"after {REPAIR}", timed_out) | {"SABOTAGE_DEED": "time out"}
    stream.start()
    restarted.await_convergence()
    restarted.each_was_repaired_once()
    assert timed_out.exists()
    unreachable = "reconcilers.words.errors.Unreachable: no answer came in time"
    assert stream.said(f"the query died: {unreachable}")
    assert stream.stop() == 0


@pytest.mark.long(part="kills")
def test_a_driver_killed_before_between_and_after_look_journal_and_repair_goes_on(
    restarted: Restarted, tmp_path: Path
) -> None:
    survives(restarted, MAIN_POINTS, tmp_path)


@pytest.mark.long(part="kills")
def test_a_driver_killed_at_every_other_step_goes_on(restarted: Restarted, tmp_path: Path) -> None:
    survives(restarted, MORE_POINTS, tmp_path)
