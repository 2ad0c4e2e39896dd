"""What the mail server sends to each table, in which order, and what is lost with each fault."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from cassandra import OperationTimedOut

from deploy.mailserver import counters
from deploy.mailserver.faults import (
    FaultKind,
    FaultPlan,
    Faults,
    ProcessDiedError,
    StatementTimeoutError,
)
from deploy.mailserver.history import MESSAGES
from deploy.mailserver.mail import Flags, Message
from deploy.mailserver.mailbag import random_content
from deploy.mailserver.mailserver import MailServer, new_timeuuid
from deploy.mailserver.variant import Variant
from tests.fakes.memory_cassandra import KEYSPACE, MemoryCassandra

ROOT = "#private&bob@example.org"
FULL = Flags(frozenset({"deleted"}), frozenset({"work"}))
"""A message that is in every index: deleted, unseen, recent, with a user flag."""
INDEXES = ["firstunseen", "mailboxrecents", "messagedeleted", "applicableflag"]


@dataclass
class Scene:
    """A mail server with a mailbox, on tables in memory; `faults` strike first statements."""

    faults: Faults = field(default_factory=Faults)
    session: MemoryCassandra = field(default_factory=MemoryCassandra)

    def __post_init__(self) -> None:
        self.server = MailServer(self.session, KEYSPACE, faults=self.faults)
        self.mailboxid = self.server.create_mailbox("bob@example.org", "INBOX")
        self.octets = 0

    def append(self, flags: Flags = FULL, mailboxid: UUID | None = None) -> Message:
        content = random_content(random.Random(1))
        self.octets = content.fullcontentoctets
        return self.server.append(mailboxid or self.mailboxid, content, flags)

    def sent(self, operation: Callable[[], object]) -> list[tuple[str, list[Any]]]:
        """What an operation writes: CQL without the keyspace, and values without write times.

        Not what it writes of content: that is `with_content`.
        """
        return [each for each in self.with_content(operation) if _table(each[0]) != "messagev3"]

    def with_content(self, operation: Callable[[], object]) -> list[tuple[str, list[Any]]]:
        """The same with what it writes of content."""
        begun = len(self.session.log)
        operation()
        log = self.session.log[begun:]
        return [_without_times(*each) for each in log if not each[0].startswith("SELECT")]

    def tables(self, operation: Callable[[], object]) -> list[str]:
        """The tables that an operation writes to, in order."""
        return [_table(cql) for cql, _ in self.sent(operation)]


def _without_times(cql: str, values: list[Any]) -> tuple[str, list[Any]]:
    kept = values
    if "VALUES" in cql and cql.endswith("USING TIMESTAMP ?"):
        kept = values[:-1]
    elif "USING TIMESTAMP ?" in cql:
        kept = values[1:]
    return cql.replace(f"{KEYSPACE}.", "").replace(" USING TIMESTAMP ?", ""), kept


def _table(cql: str) -> str:
    words = cql.split()
    return words[1] if words[0] == "UPDATE" else words[2]


def first_statement(projection: str, kind: FaultKind) -> Faults:
    """A fault of this kind strikes the first statement to this projection."""
    return Faults([FaultPlan(1, 1, 1, (kind,), projection=projection)])


# --- content

CONTENT = "messagev3"


def content_writes(scene: Scene, operation: Callable[[], object]) -> list[tuple[int, str]]:
    """Which statements of an operation are to content, and whether it adds or deletes."""
    sent = [cql for cql, _ in scene.with_content(operation)]
    return [(at, cql.split()[0]) for at, cql in enumerate(sent) if _table(cql) == CONTENT]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_content_is_written_before_the_truth_and_once_for_all_copies(scene: Scene) -> None:
    assert content_writes(scene, scene.append) == [(0, "UPDATE")]
    message = scene.append()
    assert content_writes(scene, lambda: scene.server.copy(message, scene.mailboxid)) == []


def test_content_goes_last_and_only_when_the_truth_has_no_row_anywhere(scene: Scene) -> None:
    message = scene.append()
    there = scene.server.copy(message, scene.server.create_mailbox("bob@example.org", "Archive"))
    assert content_writes(scene, lambda: scene.server.expunge(message)) == []
    written = scene.with_content(lambda: scene.server.expunge(there))
    assert written[-1] == ("DELETE FROM messagev3 WHERE messageid = ?", [message.messageid])


def test_content_stays_where_the_expunge_has_failed_for_its_user() -> None:
    scene = Scene(first_statement(MESSAGES, FaultKind.NOT_SENT))
    content = random_content(random.Random(1))
    message = MailServer(scene.session, KEYSPACE).append(scene.mailboxid, content, FULL)

    def failing() -> None:
        with pytest.raises(StatementTimeoutError):
            scene.server.expunge(message)

    assert content_writes(scene, failing) == []


# --- statements


def test_a_new_message_goes_to_every_table_that_it_belongs_to(scene: Scene) -> None:
    truth, projected, *others = scene.sent(scene.append)
    assert truth[0].startswith("INSERT INTO imapuidtable")
    assert projected[0].startswith("UPDATE messageidtable")
    row = [scene.mailboxid, 1]
    mailbox = [scene.mailboxid]
    assert others == [
        ("INSERT INTO firstunseen (mailboxid, uid) VALUES (?, ?)", row),
        ("INSERT INTO mailboxrecents (mailboxid, recent_mesage_uid) VALUES (?, ?)", row),
        ("INSERT INTO messagedeleted (mailboxid, uid) VALUES (?, ?)", row),
        (
            "UPDATE applicableflag SET userflags = userflags + ? WHERE mailboxid = ?",
            [{"work"}, *mailbox],
        ),
        (
            "UPDATE mailboxcounters SET count = count + ?, unseen = unseen + ? WHERE mailboxid = ?",
            [1, 1, *mailbox],
        ),
        (
            "UPDATE currentquota SET messagecount = messagecount + ?, storage = storage + ?"
            " WHERE quotaroot = ?",
            [1, scene.octets, ROOT],
        ),
    ]


def test_a_seen_message_without_flags_is_recent_only(scene: Scene) -> None:
    sent = scene.sent(lambda: scene.append(Flags(frozenset({"seen"}))))
    assert [_table(cql) for cql, _ in sent] == [
        "imapuidtable",
        "messageidtable",
        "mailboxrecents",
        "mailboxcounters",
        "currentquota",
    ]
    counted = (
        "UPDATE mailboxcounters SET count = count + ? WHERE mailboxid = ?",
        [1, scene.mailboxid],
    )
    assert sent[3] == counted


def test_a_change_of_flags_tells_the_indexes_what_changed(scene: Scene) -> None:
    message = scene.append()
    seen = Flags(frozenset({"seen", "recent"}), frozenset({"work", "home"}))
    _, _, *others = scene.sent(lambda: scene.server.set_flags(message, seen))
    row = [scene.mailboxid, 1]
    assert others == [
        ("DELETE FROM firstunseen WHERE mailboxid = ? AND uid = ?", row),
        ("DELETE FROM messagedeleted WHERE mailboxid = ? AND uid = ?", row),
        (
            "UPDATE applicableflag SET userflags = userflags + ? WHERE mailboxid = ?",
            [{"home"}, scene.mailboxid],
        ),
        (
            "UPDATE mailboxcounters SET unseen = unseen + ? WHERE mailboxid = ?",
            [-1, scene.mailboxid],
        ),
    ]


def test_flags_that_no_index_knows_are_told_to_none(scene: Scene) -> None:
    message = scene.append()
    flags = Flags(message.flags.system | {"answered"}, frozenset())
    changed = scene.tables(lambda: scene.server.set_flags(message, flags))
    assert changed == ["imapuidtable", "messageidtable"]


def test_where_strong_writes_are_off_the_truth_is_updated_without_a_condition(scene: Scene) -> None:
    scene.server = MailServer(scene.session, KEYSPACE, variant=Variant(strong_writes=False))
    (truth, values), *_ = scene.sent(scene.append)
    assert truth.startswith("UPDATE imapuidtable SET modseq = ?")
    assert truth.endswith(
        "userflags = userflags + ? WHERE messageid = ? AND mailboxid = ? AND uid = ?"
    )
    assert {"work"} in values
    message = scene.append()
    (changed, _), *_ = scene.sent(lambda: scene.server.set_flags(message, Flags()))
    assert changed.startswith("UPDATE imapuidtable")
    assert " IF " not in truth + changed


def test_an_expunged_message_leaves_every_index_and_both_counters(scene: Scene) -> None:
    message = scene.append(Flags(frozenset({"seen"})))
    _, _, *others = scene.sent(lambda: scene.server.expunge(message))
    row = [scene.mailboxid, 1]
    assert others == [
        ("DELETE FROM firstunseen WHERE mailboxid = ? AND uid = ?", row),
        ("DELETE FROM mailboxrecents WHERE mailboxid = ? AND recent_mesage_uid = ?", row),
        ("DELETE FROM messagedeleted WHERE mailboxid = ? AND uid = ?", row),
        ("UPDATE mailboxcounters SET count = count + ? WHERE mailboxid = ?", [-1, row[0]]),
        (
            "UPDATE currentquota SET messagecount = messagecount + ?, storage = storage + ?"
            " WHERE quotaroot = ?",
            [-1, -scene.octets, ROOT],
        ),
    ]


def test_a_copy_and_a_move_are_counted_where_they_arrive_and_where_they_leave(scene: Scene) -> None:
    message = scene.append(Flags())
    archive = scene.server.create_mailbox("bob@example.org", "archive")
    scene.server.copy(message, scene.mailboxid)
    scene.server.move(message, archive)
    counted = scene.session.tables["mailboxcounters"].counters
    assert counted[(scene.mailboxid,)] == {"count": 1, "unseen": 1}
    assert counted[(archive,)] == {"count": 1, "unseen": 1}
    quota = scene.session.tables["currentquota"].counters[(ROOT,)]
    assert quota == {"messagecount": 2, "storage": 2 * scene.octets}


def test_a_mailbox_that_does_not_exist_counts_for_nobodys_quota(scene: Scene) -> None:
    assert scene.tables(lambda: scene.append(mailboxid=new_timeuuid()))[-1] == "mailboxcounters"


# --- faults


def after_truth(projection: str, kind: FaultKind, error: type[Exception]) -> list[str]:
    """The tables that a new message reaches although its append fails."""
    scene = Scene(first_statement(projection, kind))

    def append() -> None:
        with pytest.raises(error):
            scene.append()

    truth, *others = scene.tables(append)
    assert truth == "imapuidtable"
    return others


def test_what_goes_on_in_parallel_is_sent_when_the_projection_is_lost_but_no_event() -> None:
    reached = after_truth(MESSAGES, FaultKind.NOT_SENT, StatementTimeoutError)
    assert reached == [*INDEXES, "mailboxcounters"]


def test_a_lost_statement_to_an_index_is_not_sent_again() -> None:
    reached = after_truth("recent_uids", FaultKind.NOT_SENT, StatementTimeoutError)
    others = [table for table in INDEXES if table != "mailboxrecents"]
    assert reached == ["messageidtable", *others, "mailboxcounters"]


def test_an_index_statement_whose_answer_is_lost_was_applied_once() -> None:
    reached = after_truth("unseen_uids", FaultKind.APPLIED_BUT_TIMED_OUT, StatementTimeoutError)
    assert reached == ["messageidtable", *INDEXES, "mailboxcounters"]


@pytest.mark.parametrize(
    ("projection", "reached"),
    [
        (MESSAGES, []),
        ("unseen_uids", ["messageidtable"]),
        ("deleted_uids", ["messageidtable", *INDEXES[:2]]),
        ("mailbox_counters", ["messageidtable", *INDEXES]),
        ("current_quota", ["messageidtable", *INDEXES, "mailboxcounters"]),
    ],
)
def test_a_process_that_dies_sends_nothing_more(projection: str, reached: list[str]) -> None:
    assert after_truth(projection, FaultKind.DIED_BETWEEN_WRITES, ProcessDiedError) == reached


@pytest.mark.parametrize(
    ("kind", "times"), [(FaultKind.NOT_SENT, 0), (FaultKind.DOUBLED, 2)], ids=str
)
@pytest.mark.parametrize(
    ("projection", "table"),
    [("mailbox_counters", "mailboxcounters"), ("current_quota", "currentquota")],
)
def test_no_user_hears_of_a_counter_that_failed(
    projection: str, table: str, kind: FaultKind, times: int
) -> None:
    scene = Scene(first_statement(projection, kind))
    reached = scene.tables(scene.append)
    assert reached.count(table) == times
    assert {*reached, table} >= {*INDEXES, "mailboxcounters", "currentquota"}
    [entry] = scene.faults.ledger.entries()
    assert (entry.projection, entry.kind, entry.operation) == (projection, kind, "append")


def test_the_quota_is_sent_again_and_the_counters_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    scene = Scene()
    scene.append()
    run, failing = scene.session.execute_async, ["mailboxcounters", "currentquota", "currentquota"]

    def fails_a_few_times(bound: Any) -> Any:
        table = bound.cql.split()[1].removeprefix(f"{KEYSPACE}.")
        if table in failing:
            failing.remove(table)
            raise OperationTimedOut
        return run(bound)

    scene.session.execute_async = fails_a_few_times  # type: ignore[method-assign]
    assert scene.tables(scene.append)[-1] == "currentquota"
    assert failing == []
    assert scene.session.tables["mailboxcounters"].counters[(scene.mailboxid,)]["count"] == 1
    assert scene.session.tables["currentquota"].counters[(ROOT,)]["messagecount"] == 2
    assert len(counters.QUOTA_PAUSES_S) == 8
