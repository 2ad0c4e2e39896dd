"""What any user can put into one row or one event stops none of the others.

Everything is planted first, poison beside healthy rows, so that they come out of one window.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from functools import partial

import pytest
from cassandra.util import uuid_from_time

from tests.stack.poison import ABSURD, DATES, TOMBSTONES, bury, dates, event
from tests.stack.scenes import Place, Scene, cells, now_us
from tests.stack.streams import until

pytestmark = pytest.mark.stack

TRUTH = "imapuidtable"


@dataclass
class Planted:
    """Rows with a date that is none, by what is wrong with them; events; healthy rows.

    ``buried`` was expunged from a mailbox with more tombstones than a node reads, where ``beside``
    is missing.
    """

    missing: dict[str, Place]
    differing: dict[str, Place]
    strange: Place
    random: uuid.UUID
    buried: Place
    beside: Place
    healthy: list[Place]


@pytest.fixture(scope="module")
def planted(scene: Scene) -> Planted:
    emptied = emptied_mailbox(scene)
    old = uuid_from_time(1_600_000_000)
    made = Planted(
        missing={name: Place() for name in DATES},
        differing={name: Place() for name in DATES},
        strange=Place(),
        random=uuid.uuid4(),
        buried=Place(messageid=old, mailboxid=emptied, uid=TOMBSTONES + 1),
        beside=Place(mailboxid=emptied, uid=TOMBSTONES + 2),
        healthy=[Place() for _ in range(6)],
    )
    random = Place(messageid=made.random)
    scene.publish([event(scene, made.strange, ABSURD), event(scene, random, now_us() // 1000)])
    for name, date in DATES.items():
        scene.write_truth(made.missing[name], cells(internaldate=date, save_date=date))
        scene.write_both(made.differing[name], cells(internaldate=date, save_date=date))
        scene.write_projection(made.differing[name], {"internaldate": date - 1, "flagseen": True})
    scene.delete_truth(made.buried)
    for place in (made.beside, *made.healthy):
        scene.write_truth(place, cells())
    return made


def emptied_mailbox(scene: Scene) -> uuid.UUID:
    """A mailbox with too many tombstones, made without an event.

    The agent learns some time after the node that a table is captured no more, or again. Until it
    has passed all of these rows, capture stays off; a row each time tells how far it has come.
    """
    mailbox = uuid.uuid1()
    scene.execute("ALTER TABLE $projection WITH cdc = false")
    until("the agent passes the table over", partial(_is_passed_over, scene))
    bury(scene, "$projection", mailboxid=mailbox)
    _await_captured(scene, Place())
    scene.execute("ALTER TABLE $projection WITH cdc = true")
    return mailbox


def _is_passed_over(scene: Scene) -> bool:
    """Whether a projection row written now has no event, when a truth row after it has one."""
    place = Place()
    scene.write_projection(place, {"modseq": 1})
    scene.delete_projection(place)
    _await_captured(scene, place)
    return not _has_event(scene, place, "messageidtable")


def _await_captured(scene: Scene, place: Place) -> None:
    """Until the agent has come to a truth row that is written now."""
    scene.write_truth(place, cells())
    scene.delete_truth(place)
    until("the truth row's event is there", partial(_has_event, scene, place, TRUTH))


def _has_event(scene: Scene, place: Place, table: str) -> bool:
    return any(table.encode() in (value or b"") for _, value in scene.events([place.mailboxid]))


@pytest.mark.parametrize("name", DATES)
@pytest.mark.parametrize("kind", ["missing_row", "differing_cells"])
def test_a_row_with_such_a_date_is_added_and_a_cell_corrected(
    scene: Scene, planted: Planted, kind: str, name: str
) -> None:
    place = (planted.missing if kind == "missing_row" else planted.differing)[name]
    scene.await_verified(place.row)
    assert dates(scene, place) == (DATES[name], DATES[name])
    assert scene.kinds(place.row) == {kind}


def test_an_event_with_an_absurd_time_wakes_its_key(scene: Scene, planted: Planted) -> None:
    until("its key is remembered", partial(scene.is_known, planted.strange))


def test_an_id_that_is_not_time_based_is_a_dead_letter(scene: Scene, planted: Planted) -> None:
    def letters() -> list[str]:
        kept = scene.dead_letters()
        return [each["reason"] for each in kept if str(planted.random) in str(each)]

    assert until("it is a dead letter", letters) == ["wrong type: an id is not a time-based UUID"]


def test_a_mailbox_that_cannot_be_read_as_a_whole_is_a_finding(
    scene: Scene, planted: Planted
) -> None:
    whole = (planted.buried.mailboxid, -1)
    assert "as a whole cannot be read" in scene.reported(whole, "unreadable")["message"]


def test_it_is_read_again_when_a_person_asks(scene: Scene, planted: Planted) -> None:
    only = ("--kind", "unreadable", "--mailbox", str(planted.buried.mailboxid))

    def states() -> list[str]:
        told = scene.command("findings", *only, "--format", "jsonl").stdout
        return [json.loads(line)["state"] for line in told.splitlines()]

    until("it is reported", lambda: states() == ["reported"])
    assert "1 retried" in scene.command("findings", "--retry", "--all", "--yes", *only).stdout
    until("it is reported once more", lambda: states() == ["reported"])


def test_a_row_of_that_mailbox_is_repaired(scene: Scene, planted: Planted) -> None:
    scene.await_verified(planted.beside.row)
    assert scene.agrees(planted.beside)


def test_healthy_rows_beside_them_are_repaired(scene: Scene, planted: Planted) -> None:
    for place in planted.healthy:
        scene.await_verified(place.row)
        until("both sides agree", partial(scene.agrees, place))
    assert scene.stream.said("the query died") == []
