"""Mail that is older than the stream: capture is turned off by `doctor --off`, mail is written,
and `doctor --fix` turns capture on again. Then its users expunge some of it.

Nothing of that mail was ever heard, but for one message that was looked at before. All is planted
in one order, so that the delay passes once for all tests.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from cassandra.cluster import Session
from cassandra.util import uuid_from_time

from reconcilers.declared.families.message import MESSAGE
from reconcilers.rows.finding import State
from reconcilers.words.model import Slot
from streaming.tables import canary_schema
from tests.stack.conftest import Scenes
from tests.stack.pasts import await_agent
from tests.stack.scenes import Place, Scene, cells
from tests.stack.streams import until

pytestmark = pytest.mark.stack

YEARS_AGO = datetime(2020, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def switched(scenes: Scenes, cassandra: Session) -> Iterator[Scene]:
    """A stream with canaries of its own: `doctor --off` ends their capture, too."""
    canaries = f"canary_{uuid.uuid4().hex[:8]}"
    canary_schema.create(cassandra, canaries)
    yield from scenes({"canary": {"keyspace": canaries, "usual_delay": 60}})
    cassandra.execute(f"DROP KEYSPACE IF EXISTS {canaries}")


def old() -> Place:
    """A message of years ago, of which nothing can be remembered by its birth."""
    return Place(messageid=uuid_from_time(YEARS_AGO))


def copy_of(place: Place) -> Place:
    """The same message in the same mailbox, once more."""
    return replace(place, uid=place.uid + 1)


@dataclass
class Mail:
    """Messages of before; each case has a mailbox of its own."""

    looked_at: Place = field(default_factory=Place)
    gone: Place = field(default_factory=old)
    readable: Place = field(default_factory=old)
    elsewhere: Place = field(default_factory=old)
    other: Place = field(init=False)
    touched: Place = field(default_factory=old)

    def __post_init__(self) -> None:
        self.other = replace(self.elsewhere, mailboxid=uuid.uuid1())

    def written_unheard(self) -> list[Place]:
        single = [self.gone, self.readable, self.elsewhere, self.other, self.touched]
        return [*single, copy_of(self.touched), copy_of(self.looked_at)]


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options of doctor that let it act."""
    (file := tmp_path_factory.mktemp("admin") / "password").write_text("cassandra\n")
    return ("--admin-username", "cassandra", "--admin-password-file", str(file))


def turn(scene: Scene, *arguments: str) -> str:
    """What doctor said; the stream of these settings does not run."""
    done = scene.command("doctor", *arguments)
    assert "done     ALTER TABLE" in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def mail(switched: Scene, admin: tuple[str, ...], mail_keyspace: str) -> Mail:
    """Written while capture was off; then memory has begun anew, and heard of none of it."""
    scene, mail = switched, Mail()
    scene.write_content(mail.looked_at)
    scene.write_both(mail.looked_at, cells())
    scene.await_remembered([mail.looked_at])
    assert scene.stream.stop() == 0

    said = turn(scene, "--off", *admin, "--wait", "0")
    assert "done     lineage is reset" in said
    until("the agent captures nothing more", lambda: not comes(scene))
    for place in mail.written_unheard():
        scene.write_content(place)
        scene.write_both(place, cells())
    assert not comes(scene)
    turn(scene, "--fix", *admin)

    begun = len(scene.stream.said("lineage has begun:"))
    scene.stream.start()
    until("memory has begun", lambda: len(scene.stream.said("lineage has begun:")) > begun)
    until("the agent captures again", lambda: comes(scene))
    unheard = {each.mailboxid for each in mail.written_unheard()} - {mail.looked_at.mailboxid}
    assert not scene.events(unheard)
    return mail


def await_looked_at_again(scene: Scene, *places: Place) -> None:
    """Until looks that a person asked for now have left the findings as they were."""
    slots = [Slot(*place.row) for place in places]
    look_again(scene, *places)

    def reported() -> bool:
        found = scene.journal.recall(MESSAGE, MESSAGE.listing.name, slots)
        return all(found[slot].state is State.REPORTED for slot in slots)

    until("each was looked at again", reported)


def look_again(scene: Scene, *places: Place) -> None:
    """As a person asks for: by themselves findings that wait are looked at ever less often."""
    named = [f"{place.mailboxid}/{place.uid}" for place in places]
    scene.succeed("findings", "--retry", *named)


def comes(scene: Scene) -> bool:
    """Whether a row of the truth that is written now becomes an event.

    A row of the stack's own keyspace, which stays captured, tells how far the agent has come.
    """
    probe = Place()
    scene.write_truth(probe, cells())
    await_agent(scene.session, scene.stack)
    return bool(scene.events([probe.mailboxid]))


@pytest.fixture(scope="module")
def expunged(switched: Scene, mail: Mail) -> Mail:
    """Each is expunged; of `touched` and `looked_at` one of two copies: the truth loses both."""
    scene = switched
    scene.write_both(mail.touched, {"flagflagged": True})
    scene.await_remembered([mail.touched, copy_of(mail.touched)])
    for place in (mail.gone, mail.readable, mail.elsewhere):
        scene.delete_truth(place)  # the delete of the listing is lost
    for place in (mail.touched, mail.looked_at):
        scene.delete_truth(place)
        scene.delete_projection(copy_of(place))
    for place in (mail.gone, mail.touched):
        scene.delete_content(place)
    return mail


def test_old_mail_whose_content_is_gone_is_removed(switched: Scene, expunged: Mail) -> None:
    switched.await_verified(expunged.gone.row)
    assert switched.lacks(expunged.gone.row)
    assert "content is gone" in switched.findings(expunged.gone.row)[0]["message"]


def test_old_mail_whose_content_is_there_is_held_until_it_is_gone(
    switched: Scene, expunged: Mail
) -> None:
    row = expunged.readable.row
    switched.reported(row, "ambiguous_range_delete")
    switched.await_all_examined()
    assert not switched.lacks(row)
    switched.delete_content(expunged.readable)
    look_again(switched, expunged.readable)
    switched.await_verified(row)
    assert switched.lacks(row)


@pytest.fixture(scope="module")
def held(switched: Scene, expunged: Mail) -> Mail:
    """What nothing settles has been looked at again since it was reported."""
    switched.reported(expunged.elsewhere.row, "ambiguous_range_delete")
    switched.reported(expunged.touched.row, "content_lost")
    switched.reported(expunged.looked_at.row, "ambiguous_range_delete")
    switched.delete_content(expunged.elsewhere)
    switched.await_all_examined()
    await_looked_at_again(switched, expunged.elsewhere, expunged.touched, expunged.looked_at)
    return expunged


def test_a_message_that_lives_in_another_mailbox_is_held(switched: Scene, held: Mail) -> None:
    """Even if no content is found: the truth is asked in all mailboxes first."""
    here = held.elsewhere
    assert switched.kinds(here.row) == {"ambiguous_range_delete"}
    assert not switched.lacks(here.row)
    assert switched.agrees(held.other)


def test_the_copy_that_its_user_kept_is_held_though_its_content_is_lost(
    switched: Scene, held: Mail
) -> None:
    kept = held.touched
    assert str(kept.messageid) in switched.reported(kept.row, "content_lost")["message"]
    assert not switched.lacks(kept.row)
    assert switched.kinds(kept.row) == {"content_lost"}


def test_nothing_is_removed_where_the_copy_was_made_while_capture_was_off(
    switched: Scene, held: Mail
) -> None:
    """Memory has one of the two copies, and was whole before capture was turned off."""
    kept = held.looked_at
    assert not switched.lacks(kept.row)
    assert switched.kinds(kept.row) == {"ambiguous_range_delete"}


def test_nor_when_its_content_is_lost_with_the_truth(switched: Scene, held: Mail) -> None:
    kept = held.looked_at
    switched.delete_content(kept)
    switched.reported(kept.row, "content_lost")
    await_looked_at_again(switched, kept)
    assert not switched.lacks(kept.row)
    assert not switched.ended(kept.row)
