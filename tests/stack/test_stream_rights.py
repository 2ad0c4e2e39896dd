"""Access rights follow the lists of mailboxes: each user's row is repaired while users work."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from tests.stack.conftest import Scenes
from tests.stack.scenes import Place, Scene, cells
from tests.stack.shared_mailbox import SharedMailbox
from tests.stack.streams import until

pytestmark = pytest.mark.stack

ANA, BOB = "ana@example.com", "bob"


@pytest.fixture(scope="module")
def scene(scenes: Scenes) -> Iterator[Scene]:
    yield from scenes({"rights": {"truth": "eventstore"}})


@dataclass
class Planted:
    """Mailboxes whose lists and rows disagree, by what is wrong."""

    missing: SharedMailbox
    differing: SharedMailbox
    lost: SharedMailbox
    never: SharedMailbox
    group: SharedMailbox
    broken: SharedMailbox
    none: SharedMailbox
    deleted: SharedMailbox
    restored: SharedMailbox
    """Its row of BOB is newer than its list, whose event of him is lost."""


@pytest.fixture(scope="module")
def planted(scene: Scene) -> Planted:
    made = Planted(*(SharedMailbox(scene) for _ in range(9)))
    for each in (made.lost, made.never, made.broken, made.none, made.deleted):
        each.list_row(BOB, "lr")
    made.differing.list_row(ANA, "la")
    made.missing.grant({ANA: "lr"})
    made.differing.show(ANA, "l")
    made.differing.grant({ANA: "wlr"})
    made.lost.grant({ANA: "lr", BOB: "lr"})
    made.lost.show(ANA, "lr")
    made.lost.show(BOB, "lr")
    made.lost.grant({ANA: "lr"})
    made.never.show(BOB, "lr")
    made.never.grant({ANA: "lr"})
    made.never.show(ANA, "lr")
    made.restored.grant({ANA: "lr"})
    made.restored.show(ANA, "lr")
    made.restored.show(BOB, "lr")
    made.group.grant({"$staff": "lr", "-bob": "l", "anyone": "l", ANA: "l"})
    made.broken.grant({ANA: "lr"})
    made.broken.break_list()
    made.broken.show(ANA, "l")
    made.none.exist()
    made.none.show(BOB, "lr")
    made.deleted.show(BOB, "lr")
    return made


def test_a_right_that_is_missing_is_added(planted: Planted) -> None:
    planted.missing.await_shown(ANA, "lr")


def test_rights_that_differ_become_those_of_the_list(planted: Planted) -> None:
    planted.differing.await_shown(ANA, "lrw")


def test_a_right_that_was_taken_away_is_removed_and_the_others_stay(planted: Planted) -> None:
    planted.lost.await_shown(BOB, None)
    assert planted.lost.shown(ANA) == "lr"
    until("it is verified", lambda: _ended(planted.lost.told(BOB, kind="extra_row")))


def test_a_right_from_before_its_list_that_this_never_gave_is_removed(planted: Planted) -> None:
    planted.never.await_shown(BOB, None)
    assert planted.never.shown(ANA) == "lr"


def test_what_a_list_never_named_and_is_not_older_waits_for_a_person(planted: Planted) -> None:
    reported = {"kind": "absent_without_delete", "state": "reported"}
    until("it is reported", lambda: planted.restored.told(BOB, **reported))
    assert planted.restored.shown(BOB) == "lr"
    told = partial(planted.never.scene.stream.findings, mailboxid=planted.never.id, name=BOB)
    until("a list's row has no time", lambda: told(**reported))


def test_the_rows_of_lists_become_those_of_the_newest_event(planted: Planted) -> None:
    planted.missing.await_listed(**{ANA: "lr"})
    planted.differing.await_listed(**{ANA: "lrw"})
    planted.lost.await_listed(**{ANA: "lr"})
    planted.never.await_listed(**{ANA: "lr", BOB: "lr"})
    planted.deleted.await_listed()
    told = planted.lost.scene.stream.findings
    until(
        "its removal is verified",
        lambda: _ended(told(mailboxid=planted.lost.id, name=BOB, kind="extra_row")),
    )


def test_lists_have_groups_special_names_and_negative_rights(planted: Planted) -> None:
    planted.group.await_listed(**{"$staff": "lr", "-bob": "l", "anyone": "l", ANA: "l"})


def test_a_list_row_that_a_user_changes_meanwhile_is_the_user_s(planted: Planted) -> None:
    """As James does it: the event first, then letters are added to the row."""
    mailbox = SharedMailbox(planted.missing.scene)
    mailbox.grant({ANA: "lr"})
    mailbox.list_row(ANA, "lra")
    mailbox.await_listed(**{ANA: "lr"})
    mailbox.grant({ANA: "lr", BOB: "x"})
    mailbox.list_row(BOB, "x")
    mailbox.await_listed(**{ANA: "lr", BOB: "x"})


def test_groups_and_negative_rights_get_no_row(planted: Planted) -> None:
    planted.group.await_shown(ANA, "l")
    assert [planted.group.shown(each) for each in ("$staff", "-bob", "anyone")] == [None] * 3


def test_a_place_is_explained_with_both_sides_and_the_write(scene: Scene) -> None:
    scene.succeed("pause", "user_rights", "--reason", "a look at it")
    mailbox = SharedMailbox(scene)
    mailbox.grant({ANA: "lr"})
    told = scene.succeed("explain", f"{ANA}/{mailbox.id}").stdout
    scene.succeed("resume", "--pause", "user_rights", "--reason", "seen")
    assert f"user {ANA} mailbox {mailbox.id}" in told
    assert f"mailbox of list {mailbox.id}: gone" in told
    assert "is missing; the truth holds list" in told
    assert "but it is held now: repairs of user_rights are paused by" in told
    mailbox.await_shown(ANA, "lr")
    told = scene.succeed("explain", f"{mailbox.id}/{ANA}", "--system", "listed_rights").stdout
    assert f"mailbox {mailbox.id} name {ANA}" in told


def test_a_list_that_cannot_be_read_is_reported_and_holds_up_nobody(planted: Planted) -> None:
    told = partial(planted.broken.scene.stream.findings, mailboxid=planted.broken.id)
    until("it is reported", lambda: told(kind="unreadable", state="reported"))
    assert planted.broken.shown(ANA) == "l"
    assert planted.broken.listed() == {BOB: "lr"}


def test_the_rows_of_a_mailbox_that_was_deleted_with_its_list_are_removed(planted: Planted) -> None:
    planted.deleted.await_shown(BOB, None)


def test_the_rows_of_a_mailbox_without_a_list_are_reported_and_stay(planted: Planted) -> None:
    told = partial(planted.none.told, BOB, kind="absent_without_delete", state="reported")
    until("it is reported", told)
    assert planted.none.shown(BOB) == "lr"
    listed = partial(planted.none.scene.stream.findings, mailboxid=planted.none.id, name=BOB)
    until("its list's row, too", lambda: listed(kind="absent_without_delete", state="reported"))
    assert planted.none.listed() == {BOB: "lr"}


def test_a_row_that_is_deleted_later_comes_back_and_is_verified(planted: Planted) -> None:
    planted.missing.await_shown(ANA, "lr")
    planted.missing.hide(ANA)
    planted.missing.await_shown(ANA, "lr")
    until("it is verified", lambda: _ended(planted.missing.told(ANA)))


def test_messages_are_repaired_as_before(scene: Scene, planted: Planted) -> None:
    place = Place()
    scene.write_truth(place, cells())
    until("its row is there", partial(scene.agrees, place))
    examined = partial(scene.metric, "reconciler_keys_examined_total", family="rights")
    assert examined() >= len(vars(planted))


def test_a_table_of_rights_that_cannot_be_read_holds_up_no_message(scene: Scene) -> None:
    before = scene.metric("reconciler_query_restarts_total", family="message")
    scene.execute("ALTER TABLE $mail.usermailboxacl RENAME username TO somebody")
    try:
        mailbox = SharedMailbox(scene)
        mailbox.grant({ANA: "lr"})
        until(
            "the stream of rights has died",
            lambda: scene.metric("reconciler_query_restarts_total", family="rights") > 0,
        )
        place = Place()
        scene.write_truth(place, cells())
        until("its row is there", partial(scene.agrees, place))
        assert scene.metric("reconciler_query_restarts_total", family="message") == before
    finally:
        scene.execute("ALTER TABLE $mail.usermailboxacl RENAME somebody TO username")
    mailbox.await_shown(ANA, "lr")


def _ended(told: list[dict[str, Any]]) -> bool:
    return any(str(each["message"]).startswith("verified: ") for each in told)
