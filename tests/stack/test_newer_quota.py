"""A keyspace of James 3.9 and later: the quota of a user with a domain becomes exact.

Its rows are written and read here under the names that James's own code writes, as literals.
"""

import json
from collections.abc import Iterator

import pytest

from tests.builders.newer_james import become_newer
from tests.stack.conftest import LATEST, TALLIES, Scenes
from tests.stack.counted import SIZE, Newer
from tests.stack.scenes import Scene
from tests.stack.streams import until

pytestmark = pytest.mark.stack

COUNT = 5


@pytest.fixture(scope="module")
def newer_scene(scenes: Scenes) -> Iterator[Scene]:
    """A stream over a keyspace of James 3.9."""
    yield from scenes({"stream": {"delay": LATEST}, "tally": TALLIES}, prepared=become_newer)


@pytest.fixture(scope="module")
def boxes(newer_scene: Scene) -> tuple[Newer, Newer]:
    """One quota is two messages too low, one is right."""
    wrong, right = (Newer(newer_scene) for _ in range(2))
    for box, count in ((wrong, COUNT - 2), (right, COUNT)):
        box.create().hold(COUNT, 0).add(COUNT, 0)
        box.add_quota(count, count * SIZE)
        box.touch()
    return wrong, right


def test_a_wrong_quota_of_a_user_with_a_domain_becomes_exact(boxes: tuple[Newer, Newer]) -> None:
    wrong, right = boxes
    until("the quota is right", lambda: wrong.quota() == (COUNT, COUNT * SIZE))
    wrong.await_quota_verified()
    assert wrong.identifier in wrong.quota_findings()[0]["message"]
    assert right.quota() == (COUNT, COUNT * SIZE)
    assert not right.quota_findings()
    for box in boxes:
        assert box.rows().keys() == {("MAILBOX", "count"), ("MAILBOX", "size"), ("SIEVE", "size")}
        assert box.rows()["SIEVE", "size"] == 77


def test_commands_find_it_by_user_and_by_either_key(boxes: tuple[Newer, Newer]) -> None:
    wrong, _ = boxes
    scene = wrong.scene
    until("that is verified", lambda: len(wrong.quota_findings()) == 2)
    explained = scene.command("explain", wrong.user)
    assert f"identifier {wrong.identifier} of quotacurrentvalue" in explained.stdout
    assert "current_quota: count 5, size 20000: as listed" in explained.stdout
    words = ("findings", "--log", "today", "--user", wrong.user, "--system", "current_quota")
    listed = scene.command(*words, "--format", "json")
    assert {each["quotaroot"] for each in json.loads(listed.stdout)} == {wrong.root}
    for key in (wrong.root, wrong.identifier):
        planned = scene.command("findings", "--undo", key, "--dry-run")
        assert f"would be undone  {wrong.root}" in planned.stdout, planned.stdout + planned.stderr


def test_doctor_says_that_rows_are_read(newer_scene: Scene, boxes: tuple[Newer, Newer]) -> None:
    told = newer_scene.command("doctor").stdout
    assert "current_quota is kept in quotacurrentvalue" in told
    assert "quotacurrentvalue has rows under the names that current_quota reads" in told
