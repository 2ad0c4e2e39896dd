"""Sweeps and replays of attachments, their references and mailbox objects, beside the stream.

All differences are made before change capture begins, or passed over by the stream: no event of
them is looked at. A repair that a person undoes is not made again until its key is released.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest

from reconcilers.declared.attachments import id_as_uuid
from reconcilers.declared.families.mailbox import MAILBOX
from tests.stack.attached import TABLES, Attached, a_name, await_reported, told_of_row
from tests.stack.boxes import Boxes, Tables
from tests.stack.conftest import Changes, Scenes
from tests.stack.pasts import pass_over, settled
from tests.stack.scenes import Scene, events_of
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="sweeps")]

FAMILIES = ("attachment", "attachment_reference", "mailbox")
SYSTEMS = "attachments,attachment_references,mailbox_paths"
CONFLICTS = {
    "orphan": "extra_row",
    "old": "extra_row",
    "lost": "missing_row",
    "shared": "duplicate_uid",
}
"""The paths of `write`, with what is wrong there."""
STRAY = a_name()
"""An attachment that no message names."""
RIGHT = 12
WHO = ("--who", "ana", "--reason", "a test")


def own(message: Attached) -> str:
    """The attachment that a message names."""
    return message.id.hex


@dataclass
class Past:
    """Messages of before, by what is wrong with their only attachment; in ``right`` nothing is."""

    scene: Scene
    boxes: Boxes
    right: list[Attached]
    missing: Attached
    gone: Attached
    unnamed: Attached
    emptied: Attached
    unassigned: Attached
    lacking: Attached
    left: Attached

    def await_repaired(self) -> None:
        """Until each reference and row is as the lists say."""
        self.missing.await_referred(own(self.missing))
        self.gone.await_unreferred(STRAY)
        self.unnamed.await_unreferred(STRAY)
        until("the row names its message", lambda: self.message_of(self.unassigned) is not None)

    def message_of(self, message: Attached) -> uuid.UUID | None:
        """The message in the row of a message's attachment."""
        found: uuid.UUID | None = message.row(own(message)).message_id
        return found

    def conflicts(self) -> dict[str, str]:
        """The open findings of mailbox objects: their kinds by path. Each waits for its command."""
        found = list(self.scene.journal.open_findings(MAILBOX))
        assert {(str(each.state), str(each.wait)) for each in found} <= {("held", "command")}
        return {str(each.slot.key[-1]): str(each.kind) for each in found}

    def written(self) -> set[str]:
        """The attachments whose references or rows were repaired."""
        told = self.scene.stream.findings(state="intended")
        return {str(each.get("attachmentidasuuid") or each["idasuuid"]) for each in told}


def write(scene: Scene) -> Past:
    """All of it, unheard. The newest messages are right: this James writes both tables."""
    wrong = [Attached(scene) for _ in range(7)]
    right = [Attached(scene) for _ in range(RIGHT)]
    past = Past(scene, Boxes(scene.session, scene.keyspace), right, *wrong)
    for each in (past.missing, past.unassigned, past.lacking):
        each.write_content(own(each))
        each.exist()
    for each in (past.missing, past.left):
        each.write_row(own(each))
    past.unassigned.write_row(own(past.unassigned), message_id=None)
    for each in (past.unassigned, past.lacking):
        each.refer(own(each))
    past.unnamed.append(own(past.unnamed))
    past.emptied.exist()
    for each in (past.gone, past.unnamed, past.emptied):
        each.refer(STRAY)
    for each in right:
        each.append(own(each))
    write_mailboxes(past.boxes)
    return past


def write_mailboxes(boxes: Boxes) -> None:
    boxes.mailbox("a", "INBOX")
    boxes.path("INBOX", "a")
    boxes.path("orphan", "b")
    boxes.mailbox("c", "lost")
    boxes.mailbox("d", "new")
    boxes.path("new", "d")
    boxes.path("old", "d")
    boxes.mailbox("j", "shared")
    boxes.path("shared", "j")
    boxes.mailbox("k", "shared")


CHANGES: Changes = {
    "attachments": {"tables": TABLES},
    "mailboxes": {"watch": True},
    "repair": {"recheck_interval": 600},
    "sweep": {"ranges": 16},
}


@pytest.fixture(scope="module")
def past(scenes: Scenes, mail_keyspace: str) -> Iterator[Past]:
    """A stream that does not sweep by itself."""
    yield from scenes.over(write, CHANGES)


@dataclass(frozen=True)
class Swept:
    """What the sweep has said, and what James's tables of mailboxes held before it."""

    told: str
    boxes: Tables


@pytest.fixture(scope="module")
def swept(past: Past) -> Swept:
    before = past.boxes.tables()
    return Swept(past.scene.succeed("sweep", "--systems", SYSTEMS).stdout, before)


def test_references_and_rows_of_before_are_repaired_and_no_right_one_is(
    past: Past, swept: Swept
) -> None:
    assert "every row was compared" in swept.told, swept.told
    past.await_repaired()
    assert past.message_of(past.unassigned) == past.unassigned.id
    wrong = [own(past.missing), own(past.unassigned), STRAY]
    assert past.written() == {str(id_as_uuid(each)) for each in wrong}


def test_what_only_a_person_can_settle_is_reported_and_stays(past: Past, swept: Swept) -> None:
    told = partial(past.emptied.told, STRAY, kind="absent_without_delete", state="reported")
    until("it is reported", told)
    assert past.emptied.is_referred(STRAY)
    await_reported(past.scene, own(past.lacking), "missing_content")
    await_reported(past.scene, own(past.left), "left_over")
    assert past.left.row(own(past.left)) is not None


def test_each_conflict_of_mailboxes_is_reported_and_neither_table_is_written(
    past: Past, swept: Swept
) -> None:
    until("each is reported", lambda: past.conflicts().keys() >= CONFLICTS.keys())
    assert CONFLICTS.items() <= past.conflicts().items()
    assert past.boxes.tables() == swept.boxes


# --- what a person takes back ---------------------------------------------------------------------


def undo(scene: Scene, key: str, system: str) -> None:
    told = scene.succeed("findings", "--undo", key, "--system", system, *WHO).stdout
    assert "1 undone, and on hold" in told


def release(scene: Scene, key: str) -> None:
    told = scene.succeed("findings", "--release", key, "--who", "bob", "--reason", "fine").stdout
    assert "on hold by ana: a test" in told


def await_held(message: Attached, name: str) -> None:
    """Until the stream has seen that the reference differs, and why it leaves it alone."""
    message.await_told(name, "verified")
    held = "held: on hold by ana: a test"

    def is_held() -> bool:
        return any(held in str(each["message"]) for each in message.told(name, state="held"))

    until(f"{name} is held", is_held)


def test_a_reference_that_was_added_is_taken_away_until_its_key_is_released(
    past: Past, swept: Swept
) -> None:
    message, name = past.missing, own(past.missing)
    message.await_told(name, "verified")
    undo(past.scene, message.key(name), "attachment_references")
    assert not message.is_referred(name)
    await_held(message, name)
    assert not message.is_referred(name)
    release(past.scene, message.key(name))
    message.await_referred(name)


def test_a_reference_that_was_removed_stands_again_until_its_key_is_released(
    past: Past, swept: Swept
) -> None:
    message = past.gone
    message.await_told(STRAY, "verified")
    undo(past.scene, message.key(STRAY), "attachment_references")
    assert message.is_referred(STRAY)
    await_held(message, STRAY)
    assert message.is_referred(STRAY)
    release(past.scene, message.key(STRAY))
    message.await_unreferred(STRAY)


def test_the_message_of_a_row_is_as_before_until_its_key_is_released(
    past: Past, swept: Swept
) -> None:
    """Neither the key of the row nor the row itself names the message then."""
    scene, message, name = past.scene, past.unassigned, own(past.unassigned)
    key = str(id_as_uuid(name))
    told = partial(told_of_row, scene, name)
    until("it is verified", lambda: told()[-1]["message"].startswith("verified: "))
    undo(scene, key, "attachments")
    examined(past)
    assert past.message_of(message) is None
    release(scene, key)
    until("it is corrected again", lambda: past.message_of(message) == message.id)


def examined(past: Past) -> None:
    """Wait until the rows of attachments that were written before have been looked at."""
    later = Attached(past.scene)
    later.write_row(own(later), message_id=None)
    later.write_content(own(later))
    later.exist()
    until("a later row is corrected", lambda: past.message_of(later) == later.id)


# --- replays --------------------------------------------------------------------------------------


def test_a_replay_finds_what_the_stream_has_passed_over(past: Past, swept: Swept) -> None:
    past.await_repaired()
    scene, (unreferred, unassigned, *_) = past.scene, past.right
    scene.stream.stop()
    heard = len(events(scene))
    unreferred.forget(own(unreferred))
    unassigned.write_row(own(unassigned), message_id=uuid.uuid1())
    past.boxes.path("passed over", "l")
    until("Kafka has the events", lambda: len(events(scene)) >= heard + 3)
    for family in FAMILIES:
        pass_over(scene, family)
    scene.stream.start_watching()
    topic = scene.stack.topic_prefix
    partitions = [number for name, number in settled(scene).settled if name == topic]
    offsets = [f"--from-offset={topic}:{number}:0" for number in partitions]
    told = scene.succeed("replay", *offsets, "--dry-run").stdout
    for seen in (
        "attachments: extra_row: 1 seen, none handed over",
        "attachment_references: missing_row: 1 seen, none handed over",
        "mailbox_paths: extra_row: 1 seen, none handed over",
    ):
        assert seen in told, told
    assert not unreferred.is_referred(own(unreferred))
    scene.succeed("replay", *offsets)
    unreferred.await_referred(own(unreferred))
    await_reported(scene, own(unassigned), "left_over")  # no event names the message that has it
    until("the conflict is reported", lambda: past.conflicts().get("passed over") == "extra_row")


def events(scene: Scene) -> list[object]:
    """The events of the tables that the replay is to find something in."""
    return events_of(scene.stack, scene.keyspace, *TABLES, "mailboxpathv3")


@pytest.fixture(scope="module")
def sweeping(scenes: Scenes, mail_keyspace: str) -> Iterator[Past]:
    """A stream that sweeps by itself, as by default."""
    sweep = {"ranges": 16, "when_needed": True}
    yield from scenes.over(write, {**CHANGES, "sweep": sweep})


def test_the_stream_sweeps_all_of_them_by_itself(sweeping: Past) -> None:
    sweeping.await_repaired()
    until("conflicts are reported", lambda: sweeping.conflicts() == CONFLICTS)
    until("none is due", lambda: sweeping.scene.metric("reconciler_sweep_due") == 0)
    told = sweeping.scene.succeed("status").stdout
    for family in FAMILIES:
        assert f"{family}: last swept " in told, told
