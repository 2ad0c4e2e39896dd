"""A user with 10,000 shared mailboxes, and a mailbox that is shared with 1,000 users."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest

from tests.stack.conftest import Scenes
from tests.stack.scenes import Scene, insertion
from tests.stack.shared_mailbox import SharedMailbox
from tests.stack.streams import until

pytestmark = [pytest.mark.stack, pytest.mark.long(part="loads")]

MAILBOXES, USERS = 10_000, 1_000
MISSING, REVOKED = 100, 200
AT_ONCE = 500
"""Mailboxes whose list and rows are written within the delay."""
USER, LETTERS = "everybody's assistant", "lr"
NAMES = [f"user{number:04}" for number in range(USERS)]
SYSTEMS = {"user_rights": "username", "listed_rights": "name"}
"""With the column that names the user in a finding."""
LIMITS = {
    "suspects_per_minute": 10_000,
    "removals_per_minute": 10_000,
    "writes_per_minute": 20_000,
}


@pytest.fixture(scope="module")
def scene(scenes: Scenes) -> Iterator[Scene]:
    yield from scenes(
        {"rights": {"truth": "eventstore"}, "repair": LIMITS, "stream": {"delay": 10}}
    )


@dataclass(frozen=True)
class Assistant:
    """A user of many mailboxes, whose rows are missing in some, and left behind in others."""

    scene: Scene
    mailboxes: list[UUID]

    def shown(self) -> set[UUID]:
        """The mailboxes of the user's rows."""
        query = "SELECT mailboxid FROM $mail.usermailboxacl WHERE username = %s"
        return {row.mailboxid for row in self.scene.execute(query, USER)}

    def listed(self) -> set[UUID]:
        """The mailboxes whose list names the user."""
        rows = self.scene.execute("SELECT id, key FROM $mail.aclv2")
        return {row.id for row in rows if row.key == USER}

    def repaired(self, system: str) -> set[UUID]:
        """The mailboxes in which a row of the user was written or removed."""
        facts = {"projection": system, SYSTEMS[system]: USER, "state": "intended"}
        return {UUID(str(each["mailboxid"])) for each in self.scene.stream.findings(**facts)}

    def share(self, mailboxes: list[UUID]) -> None:
        """Write lists and rows, all of them right; events without a lightweight transaction."""
        self._tell(0, {}, {USER: LETTERS}, mailboxes)
        rows = insertion("$mail.usermailboxacl", ("username", "mailboxid", "rights"))
        self.scene.execute_many(rows, [(USER, each, LETTERS) for each in mailboxes])
        add = "UPDATE $mail.aclv2 SET rights = rights + ? WHERE id = ? AND key = ?"
        self.scene.execute_many(add, [(set(LETTERS), each, USER) for each in mailboxes])

    def lose(self, mailboxes: list[UUID]) -> None:
        """Delete the user's rows of both tables, and leave the lists."""
        hide = "DELETE FROM $mail.usermailboxacl WHERE username = ? AND mailboxid = ?"
        self.scene.execute_many(hide, [(USER, each) for each in mailboxes])
        remove = "DELETE FROM $mail.aclv2 WHERE id = ? AND key = ?"
        self.scene.execute_many(remove, [(each, USER) for each in mailboxes])

    def revoke(self, mailboxes: list[UUID]) -> None:
        """Empty the lists, and leave the user's rows."""
        self._tell(1, {USER: LETTERS}, {}, mailboxes)

    def _tell(
        self, number: int, before: dict[str, str], after: dict[str, str], mailboxes: list[UUID]
    ) -> None:
        difference = {"oldAcl": {"entries": before}, "newAcl": {"entries": after}}
        told = {"eventId": number, "type": "acl-updated", "aclDiff": difference}
        events = [
            (str(each), number, json.dumps({**told, "aggregateKey": str(each)}))
            for each in mailboxes
        ]
        self.scene.execute_many(
            insertion("$mail.eventstore", ("aggregateid", "eventid", "event")), events
        )


@pytest.fixture(scope="module")
def assistant(scene: Scene) -> Assistant:
    made = Assistant(scene, [uuid.uuid1() for _ in range(MAILBOXES)])
    for first in range(0, MAILBOXES, AT_ONCE):
        made.share(made.mailboxes[first : first + AT_ONCE])
    made.lose(made.mailboxes[:MISSING])
    made.revoke(made.mailboxes[-REVOKED:])
    return made


def test_of_ten_thousand_mailboxes_of_a_user_those_that_are_wrong_become_right(
    assistant: Assistant,
) -> None:
    ids = assistant.mailboxes
    wanted, wrong = {*ids[:-REVOKED]}, {*ids[:MISSING], *ids[-REVOKED:]}
    until("the user's rows are right", lambda: assistant.shown() == wanted)
    until("so are the lists' rows", lambda: assistant.listed() == wanted)
    assert {system: assistant.repaired(system) for system in SYSTEMS} == dict.fromkeys(
        SYSTEMS, wrong
    )


def test_a_list_of_a_thousand_users_becomes_rows_of_both_tables_and_they_go(scene: Scene) -> None:
    mailbox = SharedMailbox(scene)

    def shown() -> dict[str, str]:
        rows = {each: mailbox.shown(each) for each in NAMES}
        return {each: rights for each, rights in rows.items() if rights is not None}

    for granted in (dict.fromkeys(NAMES, LETTERS), {}):
        mailbox.grant(granted)
        until(f"the list has {len(granted)} rows", lambda: mailbox.listed() == granted)  # noqa: B023
        until(f"{len(granted)} users have a row", lambda: shown() == granted)  # noqa: B023


def test_no_stream_was_started_again(scene: Scene, assistant: Assistant) -> None:
    for family in ("rights", "right_lists"):
        assert scene.metric("reconciler_keys_examined_total", family=family) > MAILBOXES
        assert scene.metric("reconciler_query_restarts_total", family=family) == 0
