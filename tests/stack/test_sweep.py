"""A sweep of a keyspace with a past: what change capture never saw is found, and repaired.

All differences are made while the tables are not captured; the stream knows nothing of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from reconcilers.words.exit_codes import ExitCode
from tests.stack.conftest import Scenes
from tests.stack.pasts import capture, is_marked, mark_deleted, uncaptured
from tests.stack.scenes import SECOND_US, Answer, Place, Scene, cells, mailbox, now_us
from tests.stack.streams import until

pytestmark = pytest.mark.stack

LONG_AGO = 3600 * SECOND_US
"""An event of then would have come, however late."""


@pytest.fixture(scope="module")
def unswept(scenes: Scenes) -> Iterator[Scene]:
    """A stream that keeps index tables, too, and never sweeps by itself."""
    repair = {"projections": ["messages", "deleted_uids"], "recheck_interval": 600}
    yield from scenes({"repair": repair, "sweep": {"ranges": 8}})


@pytest.fixture(scope="module")
def sweeping(scenes: Scenes) -> Iterator[Scene]:
    """A stream that sweeps by itself, as by default."""
    sweep = {"ranges": 8, "when_needed": True}
    yield from scenes({"repair": {"recheck_interval": 600}, "sweep": sweep})


@dataclass
class Past:
    """Mail of before, of which nobody has heard: one message for each difference."""

    right: list[Place]
    missing: Place
    stale: Place
    orphan: Place
    nameless: Place
    marked: Place


@pytest.fixture(scope="module")
def past(unswept: Scene) -> Past:
    """Written while nothing was captured; then capture is turned on, and memory begins anew."""
    scene = unswept
    with uncaptured(scene):
        made = Past(mailbox(40), *(Place() for _ in range(5)))
        for place in (*made.right, made.stale, made.nameless, made.marked):
            scene.write_both(place, cells())
        scene.write_truth(made.missing, cells())
        scene.write_projection(made.stale, {"flagseen": True})
        orphan = {"messageid": made.orphan.messageid, **cells()}
        scene.write_projection(made.orphan, orphan, now_us() - LONG_AGO)
        nameless = "DELETE messageid FROM $projection WHERE mailboxid = %s AND uid = %s"
        scene.execute(nameless, *made.nameless.row)
        mark_deleted(scene, made.marked)
    return made


@pytest.fixture(scope="module")
def swept(unswept: Scene, past: Past) -> Answer:
    """The first sweep, with what it said."""
    assert not unswept.findings(past.missing.row)
    return unswept.command("sweep", "--reason", "the first")


def test_what_capture_never_saw_is_found_and_repaired(
    unswept: Scene, past: Past, swept: Answer
) -> None:
    assert swept.returncode == 0, swept.stderr
    for place in (past.missing, past.stale, past.nameless):
        until(f"{place} agrees", partial(unswept.agrees, place))
    until("the index row is gone", lambda: not is_marked(unswept, past.marked))


def test_what_nobody_knows_the_reason_of_is_held(unswept: Scene, past: Past, swept: Answer) -> None:
    assert swept.returncode == 0, swept.stderr
    unswept.reported(past.orphan.row, "ambiguous_range_delete")
    assert not unswept.lacks(past.orphan.row)


def test_it_says_what_became_of_each_kind(swept: Answer) -> None:
    assert "messages: missing_row: 1 seen: 1 repaired" in swept.stdout
    assert "messages: differing_cells: 2 seen: 2 repaired" in swept.stdout
    assert "messages: extra_row: 1 seen: 1 " in swept.stdout
    assert "deleted_uids: extra_row: 1 seen: 1 repaired" in swept.stdout
    assert "lineage is complete" in swept.stdout
    assert "imapuidtable: 8 of 8 ranges" in swept.stderr


def test_the_stream_shows_what_runs_and_the_sweep_of_another_process(
    unswept: Scene, swept: Answer
) -> None:
    assert swept.returncode == 0, swept.stderr
    success = partial(unswept.metric, "reconciler_sweep_last_success_timestamp_seconds")
    until("the sweep is shown", lambda: success() > 0)
    until("no other is due", lambda: unswept.metric("reconciler_sweep_due") == 0)
    assert unswept.metric("reconciler_sweep_duration_seconds") > 0
    assert unswept.metric("reconciler_sweep_last_failure_timestamp_seconds") == 0
    assert unswept.metric("reconciler_info", mode="repair") == 1
    assert unswept.metric("reconciler_kafka_retention_seconds") > 0
    java = "reconciler_memory_bytes is more than that of the driver alone"
    until(java, lambda: unswept.metric("reconciler_memory_bytes") > 2 * 10**8)
    assert unswept.metric("reconciler_losses_total", why="capture") > 0


def test_the_next_sweep_finds_nothing_new_and_writes_nothing(
    unswept: Scene, past: Past, swept: Answer
) -> None:
    assert swept.returncode == 0, swept.stderr
    unswept.await_verified(past.nameless.row)
    before = [unswept.write_times(place.row) for place in past.right]
    again = unswept.succeed("sweep")
    assert "1 suspects found" in again.stdout  # the one that waits for a person
    assert "messageidtable, ahead: 8 of 8 ranges" in again.stderr
    assert [unswept.write_times(place.row) for place in past.right] == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--systems", "mesages"], "mesages is none of messages, deleted_uids"),
        (["--systems", ","], "nothing is none of"),
        (["--resume"], "no sweep is left to go on with"),
    ],
)
def test_what_cannot_be_swept_is_told_in_a_line(
    unswept: Scene, swept: Answer, arguments: list[str], told: str
) -> None:
    assert told in unswept.refuse("sweep", *arguments)


@pytest.mark.long(part="sweeps")
def test_what_was_lost_is_swept_for_by_the_stream_itself(sweeping: Scene) -> None:
    scene, right, missing = sweeping, Place(), Place()
    until("its first sweep has ended", lambda: scene.stream.said("lineage is complete"))
    capture(scene, "false")
    until("memory has ended", lambda: scene.stream.said("changes may have been missed"))
    scene.write_both(right, cells())
    scene.write_truth(missing, cells())
    capture(scene, "true")
    until("it is found and repaired", lambda: scene.agrees(missing))
    until("lineage is complete again", lambda: len(ends(scene)) > 1)
    told = scene.command("status").stdout
    assert "last swept " in told
    assert "lineage is complete" in told
    again = scene.command("sweep", "--resume")
    assert "no sweep is left to go on with" in again.stderr


def ends(scene: Scene) -> list[dict[str, Any]]:
    return scene.stream.said("sweep: lineage is complete")


@pytest.mark.long(part="commands")
def test_where_no_stream_runs_the_command_settles_what_it_finds(sweeping: Scene) -> None:
    scene, missing = sweeping, Place()
    capture(scene, "false")
    scene.write_truth(missing, cells())
    scene.stream.stop()
    assert "no stream runs: say which" in scene.refuse("sweep")
    answer = scene.command("sweep", "--mode", "repair")
    assert answer.returncode == ExitCode.PROBLEMS, answer.stdout + answer.stderr
    assert scene.lacks(missing.row)
    for _ in range(2):  # the stream of the first has ended when the second asks
        answer = scene.command("sweep", "--settle", "--mode", "observe")
        assert "messages: missing_row: 1 seen: 1 observed" in answer.stdout, answer.stderr
        assert scene.lacks(missing.row)
    answer = scene.command("sweep", "--settle", "--mode", "repair")
    assert "messages: missing_row: 1 seen: 1 repaired" in answer.stdout, answer.stderr
    assert scene.agrees(missing)
    scene.stream.start_watching()
