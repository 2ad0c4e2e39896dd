"""What the mail server sends when mailboxes and their lists of rights change, and what is lost."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from deploy.mailserver.faults import (
    Fault,
    FaultKind,
    FaultPlan,
    Faults,
    ProcessDiedError,
    StatementTimeoutError,
)
from deploy.mailserver.mailbox_statements import MAILBOXES
from deploy.mailserver.mailserver import MailServer
from deploy.mailserver.rights import LIST_RIGHTS, USER_RIGHTS
from tests.fakes.memory_cassandra import KEYSPACE, Bound, MemoryCassandra

OWNER, ANA, BEN = "owner@example.org", "ana@example.org", "ben@example.org"
Statements = list[tuple[str, list[Any]]]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploy.mailserver.projection.FIRST_PAUSE_S", 0.0)


@dataclass
class Scene:
    """A mail server on tables in memory, with a mailbox."""

    faults: Faults = field(default_factory=Faults)
    session: MemoryCassandra = field(default_factory=MemoryCassandra)
    mailboxid: UUID = field(init=False)

    def __post_init__(self) -> None:
        self.server = MailServer(self.session, KEYSPACE, faults=self.faults)
        self.mailboxid = self.server.create_mailbox(OWNER, "INBOX")

    def sent(self, operation: Callable[[], object]) -> Statements:
        """What an operation writes: CQL without the keyspace, and values without write times."""
        begun = len(self.session.log)
        operation()
        log = self.session.log[begun:]
        return [_without_times(*each) for each in log if not each[0].startswith("SELECT")]

    def failing(self, error: type[Exception], operation: Callable[[], object]) -> Statements:
        def fails() -> None:
            with pytest.raises(error):
                operation()

        return self.sent(fails)

    def share(self, name: str, letters: str) -> Statements:
        return self.sent(lambda: self.server.share(self.mailboxid, name, letters))

    def rename(self) -> None:
        self.server.rename_mailbox(self.mailboxid, "Archive")

    def delete(self) -> None:
        self.server.delete_mailbox(self.mailboxid)

    def held(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.session.tables[table].rows(()))


def _without_times(cql: str, values: list[Any]) -> tuple[str, list[Any]]:
    if cql.endswith("USING TIMESTAMP ?"):
        values = values[:-1]
    elif "USING TIMESTAMP ?" in cql:
        values = values[1:]
    return cql.replace(f"{KEYSPACE}.", "").replace(" USING TIMESTAMP ?", ""), values


@dataclass(frozen=True)
class Nth(FaultPlan):
    """One fault, of the statement of this number."""

    number: int = 0

    def faults(self) -> Mapping[int, Fault]:
        [fault] = super().faults().values()
        return {self.number: fault}


def struck(projection: str, kind: FaultKind, number: int = 0) -> Scene:
    """A fault of this kind strikes the statement of this number to the projection."""
    return Scene(Faults([Nth(1, 1, 1, (kind,), projection=projection, number=number)]))


def event(number: int, mailboxid: UUID, before: dict[str, str], after: dict[str, str]) -> str:
    difference = {"oldAcl": {"entries": before}, "newAcl": {"entries": after}}
    told = {"eventId": number, "aggregateKey": str(mailboxid), "type": "acl-updated"}
    return json.dumps({**told, "aclDiff": difference}, separators=(",", ":"))


APPEND = "INSERT INTO eventstore (aggregateid, eventid, event) VALUES (?, ?, ?) IF NOT EXISTS"
GIVE = "INSERT INTO usermailboxacl (username, mailboxid, rights) VALUES (?, ?, ?)"
TAKE = "DELETE FROM usermailboxacl WHERE username = ? AND mailboxid = ?"
ADD, REMOVE, REPLACE = (
    f"UPDATE aclv2 SET rights = {sign} WHERE id = ? AND key = ?"
    for sign in ("rights + ?", "rights - ?", "?")
)
DELETE_PATH = (
    "DELETE FROM mailboxpathv3 WHERE namespace = ? AND user = ? AND mailboxname = ? IF EXISTS"
)
NEW_PATH = (
    "INSERT INTO mailboxpathv3 (namespace, user, mailboxname, mailboxid, uidvalidity)"
    " VALUES (?, ?, ?, ?, ?) IF NOT EXISTS"
)
NEW_MAILBOX = "INSERT INTO mailbox (id, mailboxbase, name, uidvalidity) VALUES (?, ?, ?, ?)"
DELETE_MAILBOX = "DELETE FROM mailbox WHERE id = ?"


# --- rights


def test_rights_are_an_event_first_then_the_row_of_the_user_then_the_list() -> None:
    scene = Scene()
    mailbox = scene.mailboxid
    assert scene.share(ANA, "rl") == [
        (APPEND, [str(mailbox), 0, event(0, mailbox, {}, {ANA: "lr"})]),
        (GIVE, [ANA, mailbox, "lr"]),
        (ADD, [{"l", "r"}, mailbox, ANA]),
    ]
    assert scene.share(ANA, "lrw") == [
        (APPEND, [str(mailbox), 1, event(1, mailbox, {ANA: "lr"}, {ANA: "lrw"})]),
        (GIVE, [ANA, mailbox, "lrw"]),
        (REPLACE, [{"l", "r", "w"}, mailbox, ANA]),
    ]
    assert scene.share(ANA, "") == [
        (APPEND, [str(mailbox), 2, event(2, mailbox, {ANA: "lrw"}, {})]),
        (TAKE, [ANA, mailbox]),
        (REMOVE, [{"l", "r", "w"}, mailbox, ANA]),
    ]
    assert scene.held("usermailboxacl") == scene.held("aclv2") == []


@pytest.mark.parametrize("name", ["$staff", f"-{ANA}", "-$staff", "anyone", "authenticated"])
def test_groups_and_negative_rights_have_no_row_of_a_user(name: str) -> None:
    scene = Scene()
    assert [cql for cql, _ in scene.share(name, "l")] == [APPEND, ADD]


def test_a_list_is_replaced_as_a_whole_by_one_event() -> None:
    scene = Scene()
    scene.share(ANA, "lr")
    scene.share(BEN, "lr")
    granted = {BEN: "l", "$staff": "l"}
    sent = scene.sent(lambda: scene.server.share_with(scene.mailboxid, granted))
    assert [cql for cql, _ in sent] == [APPEND, TAKE, GIVE, ADD, REMOVE, REPLACE]
    assert scene.held("usermailboxacl") == [(BEN, scene.mailboxid, "l")]
    assert [each[1:] for each in scene.held("aclv2")] == [("$staff", {"l"}), (BEN, {"l"})]


def test_a_number_that_another_server_took_is_not_used_again() -> None:
    scene = Scene()
    run, other = scene.session.execute_async, MailServer(scene.session, KEYSPACE)
    overtaken = [True]

    def overtake(bound: Bound) -> Any:
        if "INSERT INTO mail.eventstore" in bound.cql and overtaken.pop():
            overtaken.append(False)
            scene.session.execute_async = run  # type: ignore[method-assign]
            other.share(scene.mailboxid, BEN, "l")
        return run(bound)

    scene.session.execute_async = overtake  # type: ignore[method-assign]
    scene.share(ANA, "lr")
    events = [(number, json.loads(told)) for _, number, told, _ in scene.held("eventstore")]
    assert [number for number, _ in events] == [0, 1]
    assert events[1][1]["aclDiff"]["newAcl"]["entries"] == {BEN: "l", ANA: "lr"}


@pytest.mark.parametrize(
    ("lost", "kept"), [(USER_RIGHTS, "aclv2"), (LIST_RIGHTS, "usermailboxacl")]
)
def test_a_subscriber_that_fails_is_dropped_and_the_other_goes_on(lost: str, kept: str) -> None:
    scene = struck(lost, FaultKind.NOT_SENT)
    scene.share(ANA, "lr")
    held = {table for table in ("usermailboxacl", "aclv2") if scene.held(table)}
    assert held == {kept}
    [entry] = scene.faults.ledger.entries()
    assert (entry.projection, entry.rows) == (lost, ((scene.mailboxid, ANA),))
    assert entry.accepts == ("verified",)


def test_a_process_that_dies_runs_no_further_subscriber() -> None:
    scene = struck(USER_RIGHTS, FaultKind.DIED_BETWEEN_WRITES)
    sent = scene.failing(ProcessDiedError, lambda: scene.share(ANA, "lr"))
    assert [cql for cql, _ in sent] == [APPEND]
    differing = {projection for projection, _ in scene.faults.ledger.differing({})}
    assert differing == {USER_RIGHTS, LIST_RIGHTS}


# --- mailboxes


def path(scene: Scene, name: str) -> list[Any]:
    return ["#private", OWNER, name]


def test_a_mailbox_is_renamed_by_its_paths_first() -> None:
    scene = Scene()
    assert scene.sent(scene.rename) == [
        (NEW_PATH, [*path(scene, "Archive"), scene.mailboxid, 1]),
        (DELETE_PATH, path(scene, "INBOX")),
        (NEW_MAILBOX, [scene.mailboxid, ("#private", OWNER), "Archive", 1]),
    ]


def test_a_mailbox_is_deleted_with_its_list_and_what_belongs_to_it() -> None:
    scene = Scene()
    scene.share(ANA, "lr")
    mailbox = scene.mailboxid
    *sent, first, second, third, fourth, fifth = scene.sent(scene.delete)
    assert sent == [
        (DELETE_PATH, path(scene, "INBOX")),
        (DELETE_MAILBOX, [mailbox]),
        (TAKE, [ANA, mailbox]),
        (APPEND, [str(mailbox), 1, event(1, mailbox, {ANA: "lr"}, {})]),
        (TAKE, [ANA, mailbox]),
        (REMOVE, [{"l", "r"}, mailbox, ANA]),
    ]
    rest = (first, second, third, fourth, fifth)
    assert all(cql.startswith("DELETE") and values == [mailbox] for cql, values in rest)


def test_a_mailbox_that_aclv2_does_not_know_is_deleted_without_an_event() -> None:
    scene = struck(LIST_RIGHTS, FaultKind.NOT_SENT)
    scene.share(ANA, "lr")
    assert APPEND not in [cql for cql, _ in scene.sent(scene.delete)]


LOST, DIED = FaultKind.NOT_SENT, FaultKind.DIED_BETWEEN_WRITES
UNANSWERED = FaultKind.APPLIED_BUT_TIMED_OUT
OF_CREATION = 2
"""Statements before the one that a fault strikes."""


@pytest.mark.parametrize(
    ("operation", "statement", "kind", "conflict"),
    [
        (Scene.rename, 0, LOST, False),
        (Scene.rename, 0, UNANSWERED, True),
        (Scene.rename, 1, LOST, True),
        (Scene.rename, 1, UNANSWERED, False),
        (Scene.rename, 2, DIED, True),
        (Scene.delete, 0, LOST, False),
        (Scene.delete, 0, UNANSWERED, True),
        (Scene.delete, 1, DIED, True),
        (Scene.delete, 1, UNANSWERED, False),
    ],
)
def test_what_is_lost_leaves_a_conflict_unless_it_is_sent_again(
    operation: Callable[[Scene], None], statement: int, kind: FaultKind, conflict: bool
) -> None:
    scene = struck(MAILBOXES, kind, OF_CREATION + statement)
    with suppress(StatementTimeoutError, ProcessDiedError):
        operation(scene)
    paths, rows = scene.held("mailboxpathv3"), scene.held("mailbox")
    assert conflict == ([each[2] for each in paths] != [each[2] for each in rows])
    assert scene.faults.ledger.differing({}) == (
        {(MAILBOXES, (scene.mailboxid, OWNER))} if conflict else set()
    )
    [entry] = scene.faults.ledger.entries()
    assert entry.accepts == (("mailbox_conflict",) if conflict else ("mailbox_conflict", "healed"))
