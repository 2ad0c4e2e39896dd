"""Attachments follow the lists of messages: references are repaired, rows corrected or reported.

Messages are written as James writes them: rows and references, then content with its list, then the
place in a mailbox.
"""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from reconcilers.declared.attachments import id_as_uuid
from tests.stack.attached import (
    TABLES,
    Attached,
    a_name,
    await_reported,
    told_of_row,
)
from tests.stack.conftest import Scenes
from tests.stack.scenes import Place, Scene, cells, events_of
from tests.stack.streams import until

pytestmark = pytest.mark.stack

ONE, TWO = a_name(), a_name()


@pytest.fixture(scope="module")
def scene(scenes: Scenes) -> Iterator[Scene]:
    yield from scenes({"attachments": {"tables": TABLES}, "repair": {"recheck_interval": 5}})


@dataclass
class References:
    """Messages whose references and lists disagree, by what is wrong."""

    missing: Attached
    gone: Attached
    unnamed: Attached
    emptied: Attached
    broken: Attached
    shared: Attached
    sharing: Attached


@pytest.fixture(scope="module")
def references(scene: Scene) -> References:
    made = References(*(Attached(scene) for _ in range(7)))
    made.missing.write_row(ONE)
    made.missing.write_content(ONE)
    made.missing.exist()
    made.gone.refer(a_name())
    made.gone.refer(TWO)
    made.unnamed.append(a_name())
    made.unnamed.refer(TWO)
    made.emptied.exist()
    made.emptied.refer(TWO)
    made.broken.exist()
    made.broken.break_list()
    made.broken.refer(TWO)
    both = a_name()
    made.shared.append(both)
    made.sharing.append(both)
    made.shared.expunge()
    made.shared.refer(both)  # a delete that was lost, and an event that tells of the row
    made.sharing.refer(both)
    SHARED.append(both)
    return made


SHARED: list[str] = []


@pytest.mark.usefixtures("rows")
def test_a_reference_that_is_missing_is_added_and_verified(references: References) -> None:
    references.missing.await_referred(ONE)
    references.missing.await_told(ONE, "verified")


def test_a_reference_to_a_message_that_is_gone_is_removed(references: References) -> None:
    references.gone.await_unreferred(TWO)
    references.gone.await_told(TWO, "verified")


def test_a_reference_that_its_message_does_not_name_is_removed(references: References) -> None:
    references.unnamed.await_unreferred(TWO)


def test_a_reference_to_a_message_that_has_lost_its_content_is_reported_and_stays(
    references: References,
) -> None:
    told = partial(references.emptied.told, TWO, kind="absent_without_delete", state="reported")
    until("it is reported", told)
    assert references.emptied.is_referred(TWO)


def test_a_list_that_cannot_be_read_is_one_finding_of_each_table_and_disturbs_nothing(
    references: References,
) -> None:
    broken = references.broken
    told = partial(broken.scene.stream.findings, messageid=broken.id, kind="unreadable")
    for projection in ("attachments", "attachment_references"):
        until(
            f"it is reported, of {projection}",
            partial(told, projection=projection, state="reported"),
        )
    examined(broken.scene)
    assert told(state="healed") == []
    assert references.broken.is_referred(TWO)


def test_two_messages_share_an_attachment_and_the_one_that_is_kept_keeps_its_reference(
    references: References,
) -> None:
    (both,) = SHARED
    references.shared.await_unreferred(both)
    assert references.sharing.is_referred(both)
    assert references.sharing.told(both, state="intended") == []


# --- rows of attachments --------------------------------------------------------------------------


@dataclass
class Rows:
    """A message each, with attachments whose rows are wrong."""

    names: dict[str, str]
    missing: Attached
    partial: Attached
    renamed: Attached
    left: Attached


@pytest.fixture(scope="module")
def rows(scene: Scene, references: References) -> Rows:
    """Planted after the references, and with them looked at."""
    kinds = ("missing", "partial", "none", "other", "left")
    made = Rows({each: a_name() for each in kinds}, *(Attached(scene) for _ in range(4)))
    names = made.names
    made.partial.write_row(names["partial"], blob=None)
    made.renamed.write_row(names["none"], message_id=None)
    made.renamed.write_row(names["other"], message_id=uuid.uuid1())
    made.left.write_row(names["left"])
    made.missing.write_content(names["missing"])
    made.partial.write_content(names["partial"])
    made.renamed.write_content(names["none"], names["other"])
    for each in (made.missing, made.partial, made.renamed):
        each.exist()
    return made


def test_an_attachment_that_a_message_names_and_that_is_missing_is_reported(
    scene: Scene, rows: Rows
) -> None:
    message, name = rows.missing, rows.names["missing"]
    await_reported(scene, name, "missing_content")
    assert message.row(name) is None
    message.await_referred(name)
    examined(scene)
    assert told_of_row(scene, name, state="healed") == []
    message.write_row(name)
    until("it is healed", lambda: told_of_row(scene, name, state="healed"))


def test_a_partial_row_is_reported(scene: Scene, rows: Rows) -> None:
    await_reported(scene, rows.names["partial"], "missing_content")
    assert rows.partial.row(rows.names["partial"]).blobid is None


def test_the_message_of_an_attachment_is_corrected_and_no_other_cell(rows: Rows) -> None:
    message = rows.renamed
    for name in (rows.names["none"], rows.names["other"]):
        until(f"{name} names it", lambda: message.row(name).message_id == message.id)  # noqa: B023
        row = message.row(name)
        assert (row.id, row.blobid, row.size, row.type) == (name, "blob", 7, None)


def test_an_attachment_whose_message_is_gone_is_reported_and_stays(
    scene: Scene, rows: Rows
) -> None:
    await_reported(scene, rows.names["left"], "left_over")
    assert rows.left.row(rows.names["left"]) is not None


@pytest.mark.long(part="commands")
def test_uploads_are_reported_only_if_owners_are_recorded(scene: Scene) -> None:
    uploads, names = Attached(scene), [a_name() for _ in range(3)]
    uploads.write_row(names[0], message_id=None)
    examined(scene)
    assert told_of_row(scene, names[0], state="reported") == []
    scene.execute(
        "INSERT INTO $mail.attachmentowners (id, owner) VALUES (%s, 'ana')", id_as_uuid(names[1])
    )
    for each in names[1:]:
        uploads.write_row(each, message_id=None)
    await_reported(scene, names[2], "unresolved")
    assert told_of_row(scene, names[1], state="reported") == []


def examined(scene: Scene) -> None:
    """Wait until what was written before was looked at, and what was reported again."""
    message, name = Attached(scene), a_name()
    message.write_row(name)
    message.write_content(name)
    message.exist()
    message.await_told(name, "verified")


# --- what a person does ---------------------------------------------------------------------------


def test_a_reference_is_explained_held_by_a_pause_and_added_after_it(scene: Scene) -> None:
    message, name = Attached(scene), a_name()
    scene.succeed("pause", "attachment_references", "--reason", "a look at it")
    try:
        message.write_row(name)
        message.write_content(name)
        message.exist()
        until("it is held", lambda: message.told(name, state="held"))
        told = scene.succeed("explain", message.key(name)).stdout
        row = scene.succeed("explain", str(id_as_uuid(name))).stdout
    finally:
        scene.succeed("resume", "--pause", "attachment_references", "--reason", "seen")
    assert f"attachment {id_as_uuid(name)} message {message.id}" in told
    assert f"place in a mailbox of message {message.id}: there" in told
    assert "is missing; the truth holds" in told
    assert "but it is held now: repairs of attachment_references are paused by" in told
    assert f"attachment {id_as_uuid(name)}  (" in row
    assert "attachments: RIGHT" in row
    message.await_referred(name)


@pytest.mark.long(part="commands")
def test_a_pilot_of_a_mailbox_leaves_attachments_alone(scene: Scene) -> None:
    message, name = Attached(scene), a_name()
    scene.succeed("pilot", "--mailbox", str(Place().mailboxid), "--reason", "a test")
    try:
        message.write_row(name)
        message.write_content(name)
        message.exist()
        until("it is held", lambda: message.told(name, state="held"))
        assert not message.is_referred(name)
    finally:
        scene.succeed("pilot", "--end", "--reason", "seen")
    message.await_referred(name)


def test_doctor_knows_that_both_tables_are_written(scene: Scene, references: References) -> None:
    told = scene.command("doctor").stdout
    for table in TABLES:
        assert f"ok       {table} is written by this James" in told
        assert f"{table} follows" in told


def test_events_show_whether_a_list_was_set(scene: Scene) -> None:
    """What lets the events of appends without attachments be left out, as the agent sends them."""
    plain, listed, cleared = (Attached(scene) for _ in range(3))
    plain.write_content()
    listed.write_content(a_name())
    scene.execute("UPDATE $content SET attachments = null WHERE messageid = %s", cleared.id)

    def told(message: Attached) -> list[Any]:
        events = events_of(scene.stack, scene.keyspace, "messagev3")
        values = [json.loads(each.value) for each in events if str(message.id).encode() in each.key]
        return [(each["op"], each["after"]["attachments"]) for each in values]

    for message in (plain, listed, cleared):
        until(f"{message.id} was captured", partial(told, message))
    assert {str(each) for each in told(plain)} == {"('u', None)"}
    assert all(op == "u" and value is not None for op, value in told(listed) + told(cleared))


def test_messages_are_repaired_as_before(scene: Scene, references: References) -> None:
    place = Place()
    scene.write_truth(place, cells())
    until("its row is there", partial(scene.agrees, place))
    for family in ("attachment", "attachment_reference"):
        assert scene.metric("reconciler_keys_examined_total", family=family) > 0
        assert scene.metric("reconciler_query_restarts_total", family=family) == 0
