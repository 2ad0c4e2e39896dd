"""1,300 messages without a header in both tables, as a migration left them: counters are exact.

The stream reports each once, and a sweep all of them as one finding; neither holds the counters.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.stack.conftest import LATEST, TALLIES, Scenes
from tests.stack.counted import SIZE, Counted
from tests.stack.scenes import Place, Scene, cells, insertion
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="sweeps")]

MESSAGES, LOST, UNSEEN = 1_300, 4, 300
"""``LOST`` increments of the counters are missing."""
RIGHT = (MESSAGES, UNSEEN)


def headless(box: Counted) -> Counted:
    """Every message of it, equal in both tables, without ``headercontent``."""
    for number in range(MESSAGES):
        box.places.append(Place(mailboxid=box.mailboxid, uid=number + 1))
    rows = [
        {**place.ids, **cells(headercontent=None, flagseen=place.uid > UNSEEN)}
        for place in box.places
    ]
    for table in ("$truth", "$projection"):
        values = [tuple(row.values()) for row in rows]
        box.scene.execute_many(insertion(table, rows[0]), values)
    return box


@pytest.fixture(scope="module")
def box(scenes: Scenes) -> Iterator[Counted]:
    """A mailbox of such mail, with a counter and a quota that are too low."""
    changes = {"stream": {"delay": LATEST}, "tally": TALLIES, "sweep": {"ranges": 8}}
    for scene in scenes(changes):
        made = headless(Counted(scene).create()).add(MESSAGES - LOST, UNSEEN - LOST)
        made.add_quota(MESSAGES - LOST, (MESSAGES - LOST) * SIZE)
        made.touch()
        yield made


def reported(scene: Scene) -> list[dict[str, Any]]:
    told = (line["finding"] for line in scene.stream.lines() if "finding" in line)
    return [each for each in told if each["kind"] == "incomplete_in_both"]


def test_the_counters_of_mail_without_headers_become_exact(box: Counted) -> None:
    until("the counters are right", lambda: box.counters() == RIGHT)
    until("the quota is right", lambda: box.quota() == (MESSAGES, MESSAGES * SIZE))
    box.await_verified()
    box.await_quota_verified()
    assert "held" not in {each["state"] for each in (*box.findings(), *box.quota_findings())}
    told = reported(box.scene)
    assert {each["state"] for each in told} == {"reported"}
    assert len(told) == len({each["uid"] for each in told}) == MESSAGES


def test_a_sweep_tells_of_them_in_one_finding_that_holds_nothing(box: Counted) -> None:
    scene = box.scene
    until("the counters are right", lambda: box.counters() == RIGHT)
    swept = scene.command("sweep", "--reason", "a look at old mail")
    assert f"incomplete_in_both in headercontent: {MESSAGES} of" in swept.stdout, swept.stderr
    listed = scene.command("findings", "--kind", "systematic", "--format", "json").stdout
    assert len(json.loads(listed)) == 1
    before = len(box.findings())
    box.add(-LOST, 0)
    box.touch()
    until("the counters are right again", lambda: box.counters() == RIGHT)
    box.await_verified()
    assert "held" not in {each["state"] for each in box.findings()[before:]}
