"""What is consistent is never written; how often, how late, in which order events come is all one.

The consistent mailboxes are written as the mail server writes them.
"""

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import pytest

from deploy.mailserver.mail import Flags
from deploy.mailserver.mailbag import random_content
from deploy.mailserver.mailserver import MailServer
from tests.stack.scenes import SECOND_US, Place, RowKey, Scene, cells, now_us
from tests.stack.streams import DELAY, until

pytestmark = pytest.mark.stack

MINUTE_US = 60 * SECOND_US


# --- a consistent keyspace


@dataclass
class Mailbag:
    """Mailboxes that a mail server worked on, and the write times of all their cells then."""

    mailboxes: list[UUID]
    changed: set[RowKey]
    times: dict[RowKey, dict[str, int]]


def times_of(scene: Scene, mailboxes: Iterable[UUID]) -> dict[RowKey, dict[str, int]]:
    """When each cell of each row of these mailboxes was written."""
    rows = [
        (mailbox, row.uid)
        for mailbox in mailboxes
        for row in scene.execute("SELECT uid FROM $projection WHERE mailboxid = %s", mailbox)
    ]
    return {row: scene.write_times(row) for row in rows}


@pytest.fixture(scope="module")
def mailbag(scene: Scene) -> Mailbag:
    """Append, copy, copy within the mailbox, flags, move, expunge; no statement is lost."""
    chance = random.Random(4)
    server = MailServer(scene.session, scene.keyspace)
    inbox, archive = (server.create_mailbox("quiet@example.org", name) for name in ("in", "old"))
    messages = [server.append(inbox, random_content(chance), Flags()) for _ in range(24)]
    changed = [*messages]
    for number, message in enumerate(messages):
        match number % 6:
            case 0:
                changed.append(server.copy(message, archive))
            case 1:
                changed.append(server.copy(message, inbox))
            case 2 | 3:
                server.set_flags(message, Flags(frozenset({"seen"}), frozenset({"label"})))
            case 4:
                changed.append(server.move(message, archive))
            case _:
                server.expunge(message)
    rows = {(each.mailboxid, each.uid) for each in changed}
    return Mailbag([inbox, archive], rows, times_of(scene, (inbox, archive)))


def test_a_consistent_keyspace_is_examined_and_not_written(scene: Scene, mailbag: Mailbag) -> None:
    scene.await_all_examined()
    assert_nothing_done(scene, mailbag)
    query = "SELECT uid FROM $own.lineage_by_row WHERE mailboxid = %s"
    remembered = {
        (mailbox, row.uid) for mailbox in mailbag.mailboxes for row in scene.execute(query, mailbox)
    }
    assert remembered == mailbag.changed


@pytest.mark.parametrize(
    "time_", ["once", pytest.param("twice", marks=pytest.mark.long(part="sweeps"))]
)
def test_nothing_is_written_when_everything_is_replayed(
    scene: Scene, mailbag: Mailbag, time_: str
) -> None:
    scene.await_all_examined()
    before = scene.metric("reconciler_keys_examined_total")
    scene.publish(scene.events(mailbag.mailboxes))
    until(
        "as many keys were examined as changed",
        lambda: scene.metric("reconciler_keys_examined_total") >= before + len(mailbag.changed),
    )
    scene.await_all_examined()
    assert_nothing_done(scene, mailbag)


def assert_nothing_done(scene: Scene, mailbag: Mailbag) -> None:
    assert times_of(scene, mailbag.mailboxes) == mailbag.times
    for mailbox in mailbag.mailboxes:
        assert scene.stream.findings(mailboxid=mailbox) == []


# --- young writes


def test_a_write_that_is_still_on_its_way_is_no_finding(scene: Scene) -> None:
    place = Place()
    scene.write_truth(place, cells())
    time.sleep(DELAY / 3)
    scene.write_projection(place, {"messageid": place.messageid, **cells()})
    scene.await_remembered([place])
    scene.await_all_examined()
    assert scene.findings(place.row) == []


def test_what_was_written_within_the_delay_is_looked_at_again_and_judged_later(
    scene: Scene,
) -> None:
    """A row with a wrong flag is written again and again, while a neighbour is repaired."""
    busy, neighbour = Place(), Place()
    scene.write_both(busy, cells())
    scene.write_projection(busy, {"flagseen": True})
    scene.write_truth(neighbour, cells())
    written = 0
    while not scene.ended(neighbour.row):
        written = now_us() + SECOND_US  # so that a slow moment of this test is bridged
        scene.write_projection(busy, {"flagflagged": False}, at=written)
        time.sleep(0.3)
    assert scene.findings(busy.row) == []
    until("it is judged and repaired", lambda: scene.agrees(busy))
    assert now_us() > written + DELAY * SECOND_US
    scene.await_verified(busy.row)


# --- duplicates, disorder, delay


@dataclass
class Histories:
    """Rows after a history that was told three times over, and whether each must be there."""

    there: list[Place]
    gone: list[Place]


@pytest.fixture(scope="module")
def histories(scene: Scene) -> Histories:
    """Written minutes ago by their write times; each event three times more, in random order."""
    at = now_us() - 5 * MINUTE_US
    right, lost, stale, expunged, orphan = (Place() for _ in range(5))
    for place in (right, stale, expunged, orphan):
        scene.write_both(place, cells(), at)
    scene.write_truth(lost, cells(), at)
    scene.write_projection(stale, {"flagseen": True}, at + MINUTE_US)
    for place in (expunged, orphan):
        scene.execute(
            f"DELETE FROM $truth USING TIMESTAMP {at + MINUTE_US}"
            " WHERE messageid = %s AND mailboxid = %s",
            place.messageid,
            place.mailboxid,
        )
    scene.execute(
        f"DELETE FROM $projection USING TIMESTAMP {at + MINUTE_US}"
        " WHERE mailboxid = %s AND uid = %s",
        *expunged.row,
    )
    mailboxes = [each.mailboxid for each in (right, lost, stale, expunged, orphan)]
    until("every event has come", lambda: len(scene.events(mailboxes)) >= 4 * 2 + 1 + 1 + 3)
    again = scene.events(mailboxes) * 3
    random.Random(3).shuffle(again)
    scene.publish(again)
    scene.await_all_examined()
    return Histories([right, lost, stale], [expunged, orphan])


def test_duplicated_reordered_and_late_events_end_in_the_same_state(
    scene: Scene, histories: Histories
) -> None:
    for place in histories.there:
        until("it is as the truth", partial(scene.agrees, place))
        assert scene.projected_at(place.row) == {**place.ids, **cells()}
    for place in histories.gone:
        until("it is gone", partial(scene.lacks, place.row))


def test_the_same_events_later_change_nothing_more(scene: Scene, histories: Histories) -> None:
    for place in (*histories.there[1:], histories.gone[1]):
        scene.await_verified(place.row)
    places = [*histories.there, *histories.gone]
    before = [(scene.projected_at(each.row), scene.write_times(each.row)) for each in places]
    found = [scene.findings(each.row) for each in places]
    scene.publish(scene.events(each.mailboxid for each in places))
    scene.await_all_examined()
    after = [(scene.projected_at(each.row), scene.write_times(each.row)) for each in places]
    assert after == before
    assert [scene.findings(each.row) for each in places] == found


def test_an_idle_topic_does_not_hold_up_the_last_key(scene: Scene) -> None:
    scene.await_all_examined()
    last = Place()
    scene.write_truth(last, cells())  # no other event comes after it, and none on the other topic
    until("the last key has come out", lambda: scene.agrees(last))
