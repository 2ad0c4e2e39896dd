"""A column that is null in very many rows: one finding for all of them, and a person decides.

The rows are as after an upgrade of James that added the column: the truth has it, older rows of the
listing do not. All of it is written while the tables are not captured.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from deploy.mailserver.filler import fill
from tests.stack.conftest import Scenes
from tests.stack.pasts import uncaptured
from tests.stack.scenes import Answer, Place, Scene, cells
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="commands")]

MESSAGES, MAILBOXES, OLD = 3_000, 20, 1_200


@dataclass
class Upgraded:
    """Old mail: ``old`` are the rows whose thread the listing does not know."""

    scene: Scene
    old: Sequence[Place]
    missing: Place
    stale: Place
    both: Place

    @property
    def ordinary(self) -> tuple[Place, ...]:
        return (self.missing, self.stale, self.both)

    def without_thread(self) -> int:
        """How many rows of the listing have none, of those that are old."""
        rows = self.scene.execute("SELECT mailboxid, uid, threadid FROM $projection")
        lacking = {(row.mailboxid, row.uid) for row in rows if row.threadid is None}
        return len(lacking & {place.row for place in self.old})

    def told_one_by_one(self) -> set[tuple[object, int]]:
        """Those of the old rows of which the stream has logged a finding."""
        told = (line["finding"] for line in self.scene.stream.lines() if "finding" in line)
        found = {(str(each.get("mailboxid")), each.get("uid")) for each in told}
        return {place.row for place in self.old if (str(place.mailboxid), place.uid) in found}

    def systematic(self) -> list[list[str]]:
        """The lines of such findings that are open."""
        listed = self.scene.command("findings", "--kind", "systematic").stdout.splitlines()
        return [listed[at : at + 2] for at in range(0, len(listed) - 1, 2)]


@pytest.fixture(scope="module")
def upgraded(scenes: Scenes) -> Iterator[Upgraded]:
    changes: dict[str, dict[str, Any]] = {
        "repair": {
            "recheck_interval": 600,
            "suspects_per_minute": 6_000,
            "writes_per_minute": 6_000,
        },
        "sweep": {"ranges": 16},
    }
    for scene in scenes(changes):
        with uncaptured(scene):
            made = planted(scene)
        yield made


def planted(scene: Scene) -> Upgraded:
    fill(scene.session, scene.keyspace, MESSAGES, MAILBOXES)
    rows = list(scene.execute("SELECT messageid, mailboxid, uid FROM $projection"))
    places = [Place(row.messageid, row.mailboxid, row.uid) for row in rows]
    made = Upgraded(scene, places[:OLD], Place(), Place(), places[OLD])
    thread = uuid.uuid1()
    scene.execute_many(
        "UPDATE $truth SET threadid = ? WHERE messageid = ? AND mailboxid = ? AND uid = ?",
        [(thread, place.messageid, *place.row) for place in places],
    )
    scene.execute_many(
        "UPDATE $projection SET threadid = ? WHERE mailboxid = ? AND uid = ?",
        [(None if at <= OLD else thread, *each.row) for at, each in enumerate(places)],
    )
    scene.write_truth(made.missing, cells())
    scene.write_both(made.stale, cells())
    for place in (made.stale, made.both):
        scene.write_projection(place, {"flagdeleted": True, "modseq": 0})  # as no row has it
    return made


@pytest.fixture(scope="module")
def first(upgraded: Upgraded) -> Answer:
    """The first sweep, with what it said."""
    swept = upgraded.scene.succeed("sweep", "--reason", "after the upgrade")
    for place in upgraded.ordinary:
        until(f"{place} agrees", partial(upgraded.scene.agrees, place))
    return swept


def test_one_finding_tells_of_all_of_them_and_none_is_repaired(
    upgraded: Upgraded, first: Answer
) -> None:
    ((where, sentence),) = upgraded.systematic()
    assert " held " in where
    assert "differing_cells in threadid: " in sentence
    assert "rows of messages that were compared (40 %)" in sentence
    assert "`reconcile findings --accept 00000000-0000-1000-8000-000000000000/-" in sentence
    assert "systematic: differing_cells in threadid: " in first.stdout
    assert "lineage is complete" in first.stdout
    assert upgraded.without_thread() == OLD
    assert not upgraded.told_one_by_one()
    assert " 1 systematic" in upgraded.scene.command("status").stdout


def test_once_it_is_accepted_the_next_sweep_hands_all_of_them_over(
    upgraded: Upgraded, first: Answer
) -> None:
    ((_, sentence),) = upgraded.systematic()
    words = sentence.partition("`reconcile ")[2].partition("`")[0].split()
    accepted = upgraded.scene.succeed(*words)
    assert "by the next sweep: `reconcile sweep`" in accepted.stdout
    assert upgraded.without_thread() == OLD
    swept = upgraded.scene.succeed("sweep")
    until("all of them have their thread", lambda: not upgraded.without_thread())
    assert f"messages: differing_cells: {OLD} seen: {OLD} repaired" in swept.stdout
    upgraded.scene.succeed("sweep")  # its listing may have been read before the last was repaired
    assert upgraded.systematic() == []
    assert "breakers closed" in upgraded.scene.command("status").stdout
    assert not upgraded.scene.stream.said(" opened: ")
