"""Promise 1, by Cassandra's own record: a whole run under the shipped role, with its audit log.

The mail server writes under a user of its own; what the reconciler did is what the log says of its
role.
"""

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from cassandra import Unauthorized
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraJournal, CassandraLineage, Store
from checkpoints.clock import now_micros
from deploy.embedded import Stack
from reconcilers.declared.families.mailbox import MAILBOX
from reconcilers.rows.finding import Finding, State
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import NEVER_WRITTEN, Kind
from streaming.settings import CanarySettings
from tests.endpoints import Endpoints
from tests.stack.attached import TABLES, Attached, a_name
from tests.stack.boxes import Boxes
from tests.stack.conftest import Changes
from tests.stack.guarded import (
    LOGIN,
    MAIL_SERVER,
    OF_JAMES_3_8,
    OWN,
    ROLE,
    prepare,
    session_of,
)
from tests.stack.scenes import Scene, as_captured
from tests.stack.shared_mailbox import SharedMailbox
from tests.stack.streams import DELAY, Stream, until, write_settings
from tests.stack.users import PROJECTION, TRUTH
from tests.stack.watched import KINDS, SLOW, Restarted, Watched

pytestmark = pytest.mark.stack

ANA, BOB = "ana@example.com", "bob"
REPAIRED = ("usermailboxacl", "aclv2", *TABLES)
"""Projections beside that of messages."""
TRUTHS = ("eventstore", "messagev2", "messagev3", "mailbox", "mailboxpathv3")
KEPT: Changes = {
    **LOGIN,
    "rights": {"truth": "eventstore"},
    "attachments": {"tables": TABLES},
    "mailboxes": {"watch": True},
}
TABLE = re.compile(r"\|ks:(?P<keyspace>\w+)\|scope:(?P<table>\w+)\|")


@pytest.fixture(scope="module")
def live(
    guarded: Stack, admin: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Restarted]:
    """A stream under the role, beside the mail server under its user."""
    prepare(guarded, admin, with_grants_of=(*OF_JAMES_3_8, "attachmentowners", *TABLES))
    guarded.capture_tables()
    endpoints, store = Endpoints.of(guarded.describe()), Store(admin, OWN)
    CassandraLineage(store).watch_from(now_micros(), as_captured(admin, guarded.keyspace))
    file = tmp_path_factory.mktemp("role") / "reconcile.toml"
    config = write_settings(file, endpoints, guarded.keyspace, OWN, KEPT)
    with session_of(guarded, *MAIL_SERVER) as mail_server:
        place = Watched(endpoints, mail_server, guarded.keyspace)
        until("the agent captures the keyspace", place.captures, SLOW)
        with Stream(config) as stream:
            stream.wait_until_watching()  # at its start it looks which tables James writes
            yield Restarted(place, OWN, stream, CassandraJournal(store))
            assert stream.stop() == 0


def audited(stack: Stack, user: str) -> list[str]:
    """What the log says of a user."""
    lines = stack.audit_log.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if f"user:{user}|" in line]


@dataclass
class Others:
    """Rights, attachments and a mailbox that go wrong beside the messages."""

    scene: Scene
    boxes: Boxes
    one: str = field(default_factory=a_name)
    two: str = field(default_factory=a_name)

    def __post_init__(self) -> None:
        self.shared, self.message = SharedMailbox(self.scene), Attached(self.scene)

    def plant(self) -> None:
        self.shared.show(BOB, "lr")
        self.shared.list_row(BOB, "lr")
        self.shared.grant({ANA: "lr", BOB: "lr"})
        self.shared.grant({ANA: "lr"})
        self.message.write_row(self.one, message_id=uuid.uuid1())
        self.message.write_content(self.one)
        self.message.exist()
        self.message.refer(self.two)
        self.boxes.path("orphan", "a")

    def await_settled(self, journal: CassandraJournal) -> None:
        """Until all is repaired, and the mailbox is reported."""
        self.shared.await_shown(ANA, "lr")
        self.shared.await_shown(BOB, None)
        self.shared.await_listed(**{ANA: "lr"})
        self.message.await_referred(self.one)
        self.message.await_unreferred(self.two)
        names = self.message.row
        until("the row names it", lambda: names(self.one).message_id == self.message.id)
        until("the conflict is reported", lambda: [*journal.open_findings(MAILBOX)])


@pytest.fixture(scope="module")
def others(live: Restarted, guarded: Stack) -> Others:
    place = live.place
    scene = Scene(place.session, place.stack, place.keyspace, OWN, live.stream)
    return Others(scene, Boxes(scene.session, scene.keyspace))


def test_a_whole_run_writes_projections_and_no_truth(
    live: Restarted, others: Others, guarded: Stack
) -> None:
    live.plant()
    others.plant()
    live.await_convergence()
    live.each_was_repaired_once()
    others.await_settled(live.journal)
    name, _ = ROLE
    ours = audited(guarded, name)
    writes = [line for line in ours if re.search(r"\|category:(DML|DDL|DCL)\|", line)]

    keyspace = guarded.keyspace
    projection = f"{keyspace}.{PROJECTION}"
    for kind in (
        rf"UPDATE {projection} USING TIMESTAMP \? SET [a-z, =?]+ WHERE",
        rf"UPDATE {projection} USING TIMESTAMP \? SET userflags = userflags \+ \? WHERE",
        rf"UPDATE {projection} USING TIMESTAMP \? SET userflags = userflags - \? WHERE",
        rf"DELETE FROM {projection} USING TIMESTAMP \? WHERE mailboxid = \? AND uid = \?",
    ):
        assert any(re.search(kind, line) for line in writes), f"no {kind} in the log"

    written = {
        (each["keyspace"], each["table"]) for line in writes for each in TABLE.finditer(line)
    }
    own = {OWN, CanarySettings().keyspace}
    assert {table for space, table in written if space not in own} == {PROJECTION, *REPAIRED}
    assert not {table for _, table in written} & NEVER_WRITTEN
    assert not [line for line in ours if "TRUNCATE" in line]
    for table in (TRUTH, *TRUTHS):
        read = f"|ks:{keyspace}|scope:{table}|operation:SELECT"
        assert [line for line in ours if read in line], f"{table} was not read"
    theirs = audited(guarded, MAIL_SERVER[0])
    assert [line for line in theirs if f"UPDATE {keyspace}.{TRUTH}" in line], "nothing shown"


def test_an_attempt_on_the_truth_is_refused_and_recorded(live: Restarted, guarded: Stack) -> None:
    (message, *_) = live.plant()
    name, password = ROLE
    truth = f"{guarded.keyspace}.{TRUTH}"
    with session_of(guarded, name, password) as session:
        for attempt in (
            f"UPDATE {truth} SET modseq = 1 WHERE messageid = {message.messageid}"
            f" AND mailboxid = {message.mailboxid} AND uid = {message.uid}",
            f"DELETE FROM {truth} WHERE messageid = {message.messageid}",
            f"TRUNCATE {truth}",
        ):
            with pytest.raises(Unauthorized):
                session.execute(attempt)
    refused = [line for line in audited(guarded, name) if "UNAUTHORIZED_ATTEMPT" in line]
    assert len([line for line in refused if TRUTH in line]) == 3
    live.await_convergence()


@pytest.mark.long(part="servers")
def test_a_right_that_is_taken_away_is_one_finding_until_it_is_given_back(
    live: Restarted, admin: Session, guarded: Stack
) -> None:
    table = f"{guarded.keyspace}.{PROJECTION}"
    admin.execute(f"REVOKE MODIFY ON TABLE {table} FROM {ROLE[0]}")
    live.plant()

    def parked() -> list[Finding]:
        """The only finding, between two tries."""
        findings = live.open_findings()
        return findings if [each.slot for each in findings] == [WHOLE_TABLE] else []

    (finding,) = until("the table is parked", parked, SLOW)
    assert finding.kind is Kind.TABLE_REFUSES
    assert finding.sentence.startswith(f"table {PROJECTION} refuses writes: ")
    assert "no MODIFY permission" in finding.sentence
    batches = live.stream.batches()
    until("it was tried again", lambda: live.stream.batches() > batches + 2 * DELAY, SLOW)
    until("nothing else is open", parked, SLOW)
    assert len(live.differences()) == len(KINDS)
    assert len(live.stream.findings(kind=Kind.TABLE_REFUSES.value)) == 1
    admin.execute(f"GRANT MODIFY ON TABLE {table} TO {ROLE[0]}")
    live.await_convergence()
    for lines in live.histories().values():
        assert lines[-1]["state"] == "verified"
        assert lines[-1]["attempts"] == 1
    ended = live.stream.findings(kind=Kind.TABLE_REFUSES.value)[-1]
    assert ended["state"] == State.HEALED.value
