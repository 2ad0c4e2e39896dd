"""`reconcile explain` while no stream runs: what is right, what is wrong, what would be done."""

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID, uuid1

import pytest

from deploy.mailserver.mail import Flags
from deploy.mailserver.mailbag import random_content
from deploy.mailserver.mailserver import MailServer
from tests.stack.conftest import Scenes
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def stopped(scenes: Scenes) -> Iterator[Scene]:
    """A stream that has run, and does not now."""
    changes = {
        "repair": {"projections": ["messages", "deleted_uids"]},
        "tally": {"projections": ["mailbox_counters", "current_quota"]},
    }
    for scene in scenes(changes):
        scene.stream.stop()
        yield scene
        scene.stream.start_watching()


def explained(scene: Scene, *what: object) -> str:
    return scene.succeed("explain", *map(str, what)).stdout


def test_a_message_that_is_right(stopped: Scene) -> None:
    place = Place()
    stopped.write_both(place, cells())
    stopped.write_content(place)
    told = explained(stopped, place.messageid)
    assert f"message {place.messageid}: 1 places" in told
    assert "messages: RIGHT" in told
    assert "deleted_uids: RIGHT" in told
    assert f"content of message {place.messageid}: there" in told
    assert "nothing is remembered of this place" in told
    assert "differs" not in told


def test_an_event_that_is_not_settled_yet(stopped: Scene) -> None:
    place = Place()
    stopped.write_both(place, cells())
    until("Kafka has them", lambda: len(stopped.events([place.mailboxid])) > 1)
    told = explained(stopped, *place.row)
    assert "  not settled yet: event " in told
    assert {"of imapuidtable", "of messageidtable"} <= {
        " ".join(line.split()[-2:]) for line in told.splitlines() if "not settled yet" in line
    }


def test_a_flag_that_is_stale(stopped: Scene) -> None:
    place = Place()
    stopped.write_both(place, cells())
    stopped.write_projection(place, {"flagseen": True})
    told = explained(stopped, *place.row)
    (cell,) = [line for line in told.splitlines() if line.startswith("    flagseen ")]
    assert cell.endswith("differs")
    assert "messages: WRONG: messages: " in told
    assert "differs in flagseen" in told
    assert "a stream in repair mode sends: set flagseen as in the truth" in told


def test_a_row_that_is_missing_and_one_that_is_too_many(stopped: Scene) -> None:
    missing, orphan = Place(), Place()
    stopped.write_truth(missing, cells(flagdeleted=True))
    stopped.write_projection(orphan, {"messageid": orphan.messageid, **cells()})
    told = explained(stopped, missing.messageid)
    assert "messageidtable: no row" in told
    assert "is missing; the truth holds message" in told
    told = explained(stopped, *orphan.row)
    assert "imapuidtable: no row" in told
    assert "NOT REPAIRED: ambiguous_range_delete" in told  # its message was never received


def test_what_is_reported_and_not_repaired(stopped: Scene) -> None:
    incomplete = Place()
    stopped.write_truth(incomplete, {"flagseen": True})
    told = explained(stopped, incomplete.messageid)
    assert "messages: NOT REPAIRED: incomplete_truth_row: the truth row lacks cells" in told


def test_a_message_in_two_places_and_what_holds_its_repair(stopped: Scene) -> None:
    place = Place()
    copy = replace(place, mailboxid=uuid1(), uid=7)
    stopped.write_both(place, cells())
    stopped.write_truth(copy, cells())
    stopped.succeed("pause", "messages", "--reason", "a look")
    told = explained(stopped, place.messageid)
    stopped.succeed("resume")
    assert "2 places" in told
    assert "but it is held now: repairs of messages are paused by" in told
    assert "a look" in told


def test_the_same_for_machines_and_nothing_is_written(stopped: Scene) -> None:
    place = Place()
    stopped.write_both(place, cells())
    stopped.write_projection(place, {"flagseen": True})
    before = stopped.write_times(place.row)
    (told,) = json.loads(explained(stopped, *place.row, "--format", "json"))
    messages = next(each for each in told["projections"] if each["projection"] == "messages")
    assert (messages["later"] or messages["verdict"])["kind"] == "differing_cells"
    assert messages["writes"][0]["write"] == "set_cells"
    assert told["uid"] == place.uid
    assert stopped.write_times(place.row) == before


@pytest.fixture(scope="module")
def inbox(stopped: Scene) -> UUID:
    """Three messages of a user, of which the counters of the mailbox lack one."""
    server = MailServer(stopped.session, stopped.keyspace)
    inbox = server.create_mailbox("ann@example.org", "INBOX")
    chance = random.Random(5)
    for _ in range(3):
        server.append(inbox, random_content(chance), Flags())
    lower = "UPDATE $mail.mailboxcounters SET count = count - 1 WHERE mailboxid = %s"
    stopped.execute(lower, inbox)
    return inbox


def test_a_mailbox_and_its_counters(stopped: Scene, inbox: UUID) -> None:
    told = explained(stopped, inbox)
    assert f"mailbox {inbox}, of #private&ann@example.org" in told
    assert "listed now: count 3, unseen 3" in told
    assert "mailbox_counters: count 2, unseen 3: DIFFERS" in told
    assert "0 open findings of its messages" in told
    (found,) = json.loads(explained(stopped, inbox, "--format", "json"))
    assert found["listed"]["count"] == 3


def test_a_user_and_the_quota(stopped: Scene, inbox: UUID) -> None:
    told = explained(stopped, "ann@example.org")
    assert "user ann@example.org: 1 mailboxes" in told
    assert "quota root #private&ann@example.org" in told
    assert f"mailbox {inbox}, of " in told


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (["00000000-0000-11f1-ae92-02fc00000001"], "neither truth, lineage nor content"),
        (["nobody@example.org"], "no mailbox is named as one of user 'nobody@example.org'"),
        (["nobody@example.org", "3"], "is no mailbox id"),
        ([], "the following arguments are required"),
    ],
)
def test_what_nobody_knows_is_told_in_a_line(stopped: Scene, what: list[str], told: str) -> None:
    assert told in stopped.refuse("explain", *what)
