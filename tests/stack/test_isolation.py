"""The isolation matrix (S11): a table that refuses holds up none of the others.

One stream under the shipped role keeps eight tables about a mailbox. In turn one of them takes no
writes of that role any more, and a fresh mailbox has all eight broken: the others are repaired,
that one is parked as one finding; with the permission back it is repaired too. So it is with a
table that cannot be read.

A turn takes as long as a counter needs: three looks, of two delays and more each. About ten
minutes in all, the start of the stack included.
"""

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraJournal, CassandraLineage, Store
from checkpoints.clock import now_micros
from deploy.embedded import Stack
from reconcilers.declared.families import FAMILIES
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from reconcilers.rows.finding import Finding
from reconcilers.words.key import WHOLE_TABLE
from reconcilers.words.model import Kind
from tests.endpoints import Endpoints
from tests.stack.attached import Attached
from tests.stack.conftest import LATEST
from tests.stack.counted import Counted
from tests.stack.guarded import LOGIN, OWN, ROLE, prepare
from tests.stack.scenes import Place, Scene, as_captured, cells
from tests.stack.shared_mailbox import SharedMailbox
from tests.stack.streams import PATIENCE, Stream, until, write_settings

pytestmark = [pytest.mark.stack, pytest.mark.long(part="fire")]

TABLES = {
    "messagedeleted": "deleted_uids",
    "mailboxcounters": "mailbox_counters",
    "applicableflag": "applicable_flags",
    "firstunseen": "unseen_uids",
    "mailboxrecents": "recent_uids",
    "usermailboxacl": "user_rights",
    "aclv2": "listed_rights",
    "attachmentmessageid": "attachment_references",
}
"""The eight, each with what keeps it."""
OF_OTHER_FAMILIES = {
    "eventstore": {"usermailboxacl", "aclv2"},
    "usermailboxacl": {"usermailboxacl"},
    "aclv2": {"aclv2"},
    "messagev2": {"attachmentmessageid"},
    "attachmentmessageid": {"attachmentmessageid"},
}
"""Tables beside those of messages, each with what waits while it cannot be read."""
UID_COLUMNS = {"messagedeleted": "uid", "firstunseen": "uid", "mailboxrecents": "recent_mesage_uid"}
USER, LETTERS = "ana", "lr"
"""A user who has a row of rights, with its letters."""
FLAGGED, PLAIN = 1, 2
"""The UIDs of a message that belongs in each index, and of one that belongs in none."""
SLOW = PATIENCE
"""Seconds to wait for a counter on a busy machine."""
KEPT: Mapping[str, Mapping[str, Any]] = {
    **LOGIN,
    "stream": {"delay": LATEST},
    "rights": {"truth": "eventstore"},
    "attachments": {"tables": ["attachmentmessageid"]},
    "repair": {
        "projections": [each.name for each in MESSAGE_PROJECTIONS],
        "recheck_interval": 20,
    },
    "tally": {
        "projections": ["mailbox_counters", "current_quota"],
        "window": 1,
        "max_update_lag": LATEST,
        "max_quota_lag": LATEST,
        "looks": 3,
        "after_outage": 1,
    },
}


@dataclass(frozen=True)
class Mailbox:
    """Two messages, right in truth and listing; a list of rights; and eight tables about them.

    The attachment is of a message elsewhere.
    """

    scene: Scene
    id: UUID = field(default_factory=uuid.uuid1)
    messageid: UUID = field(default_factory=uuid.uuid1)

    @property
    def counted(self) -> Counted:
        """Its counters, by hand."""
        return Counted(self.scene, user=f"user-{self.id}", mailboxid=self.id)

    @property
    def rights(self) -> SharedMailbox:
        """Its list of rights, and the rows of its users."""
        return SharedMailbox(self.scene, self.id)

    @property
    def attachment(self) -> str:
        """The text id of its attachment."""
        return f"of {self.messageid}"

    @property
    def attached(self) -> Attached:
        """The message with an attachment."""
        return Attached(self.scene, self.messageid)

    def make_with_everything_wrong(self) -> None:
        """Rows missing and extra, a flag missing, counters too high; the events come last."""
        self.rights.grant({USER: LETTERS})
        self.attached.write_content(self.attachment)
        self.attached.exist()
        for table in UID_COLUMNS:
            self._add(table, PLAIN)
        self.counted.create().add(count=5, unseen=3)
        flagged = {"flagdeleted": True, "flagrecent": True, "userflags": {"work"}}
        plain = {"flagseen": True, "userflags": set()}
        for uid, flags in ((FLAGGED, flagged), (PLAIN, plain)):
            place = Place(mailboxid=self.id, uid=uid)
            self.scene.write_both(place, cells(**flags))

    def is_right(self, table: str) -> bool:
        """Whether a table says exactly what the truth does."""
        match table:
            case "mailboxcounters":
                return self.counted.counters() == (2, 1)
            case "applicableflag":
                return [set(row.userflags or ()) for row in self._rows(table)] == [{"work"}]
            case "usermailboxacl":
                return self.rights.shown(USER) == LETTERS
            case "aclv2":
                return self.rights.listed() == {USER: LETTERS}
            case "attachmentmessageid":
                return self.attached.is_referred(self.attachment)
            case _:
                uids = {getattr(row, UID_COLUMNS[table]) for row in self._rows(table)}
                return uids == {FLAGGED}

    def _add(self, table: str, uid: int) -> None:
        insert = f"INSERT INTO $mail.{table} (mailboxid, {UID_COLUMNS[table]}) VALUES (%s, %s)"
        self.scene.execute(insert, self.id, uid)

    def _rows(self, table: str) -> list[Any]:
        query = f"SELECT * FROM $mail.{table} WHERE mailboxid = %s"
        return list(self.scene.execute(query, self.id))


@dataclass(frozen=True)
class Journal:
    """What the stream's journal says, by what it keeps."""

    journal: CassandraJournal

    def open_ones(self, name: str) -> list[Finding]:
        return [
            each
            for family in FAMILIES
            for each in self.journal.open_findings(family)
            if each.projection == name
        ]

    def parked(self, name: str) -> Finding | None:
        """Its only open finding, if that is of the whole table."""
        found = self.open_ones(name)
        return found[0] if [each.slot for each in found] == [WHOLE_TABLE] else None

    def is_settled(self, name: str, mailbox: Mailbox) -> bool:
        """Whether nothing is open, and what was wrong in the mailbox was seen to be repaired."""
        return not self.open_ones(name) and "verified" in self.states(name, mailbox)

    def states(self, name: str, mailbox: Mailbox) -> set[object]:
        """All that its findings of a mailbox have been."""
        today = datetime.now(UTC).date()
        ids = {str(mailbox.id), str(mailbox.messageid)}
        return {
            line["state"]
            for day in (today - timedelta(days=1), today)
            for line in self.journal.log(day)
            if line["projection"] == name and not ids.isdisjoint(map(str, line.values()))
        }


# --- what runs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def live(
    guarded: Stack, admin: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """A stream under the shipped role; the mail in sight is written by an admin."""
    prepare(guarded, admin)
    for right in ("SELECT", "MODIFY"):  # a comment in roles.cql: few versions of James write it
        admin.execute(f"GRANT {right} ON TABLE {guarded.keyspace}.attachmentmessageid TO {ROLE[0]}")
    guarded.capture_tables()
    endpoints, keyspace = Endpoints.of(guarded.describe()), guarded.keyspace
    folder = tmp_path_factory.mktemp("stream")
    config = write_settings(folder / "reconcile.toml", endpoints, keyspace, OWN, KEPT)
    # each mailbox is to be born while all is remembered: else its counters are not lowered
    CassandraLineage(Store(admin, OWN)).watch_from(now_micros(), as_captured(admin, keyspace))
    with Stream(config) as stream:
        stream.wait_until_watching()
        yield Scene(admin, endpoints, keyspace, OWN, stream)
        assert stream.stop() == 0


@pytest.fixture(scope="module")
def journal(live: Scene) -> Journal:
    return Journal(live.journal)


Matrix = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def matrix(request: pytest.FixtureRequest) -> Iterator[Matrix]:
    """By the table that refuses and another: how the other was seen. Shown at the end."""
    found: Matrix = {}
    yield found
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n\n{shown(found)}\n")


def shown(matrix: Matrix) -> str:
    """The matrix as a table: a row for each table that refuses."""
    wide = max(map(len, TABLES)) + 2
    lines = ["refuses writes".ljust(wide) + "".join(each.ljust(wide) for each in TABLES)]
    for refusing in TABLES:
        cells_of_row = (matrix.get((refusing, each), "not seen").ljust(wide) for each in TABLES)
        lines.append(refusing.ljust(wide) + "".join(cells_of_row))
    return "\n".join(line.rstrip() for line in lines)


@contextmanager
def refused(scene: Scene, right: str, table: str) -> Iterator[None]:
    """The role lacks a right on the table, inside."""
    change = f"{right} ON TABLE $mail.{table}"
    scene.execute(f"REVOKE {change} FROM {ROLE[0]}")
    try:
        yield
    finally:
        scene.execute(f"GRANT {change} TO {ROLE[0]}")


# --- the matrix ----------------------------------------------------------------------------------


@pytest.mark.parametrize("refusing", TABLES)
def test_a_table_that_refuses_writes_holds_up_none_of_the_others(
    live: Scene, journal: Journal, matrix: Matrix, refusing: str
) -> None:
    mailbox, keeps = Mailbox(live), TABLES[refusing]
    others = [table for table in TABLES if table != refusing]
    with refused(live, "MODIFY", refusing):
        mailbox.make_with_everything_wrong()
        assert not any(mailbox.is_right(table) for table in TABLES)
        await_repaired(mailbox, refusing, others, matrix)
        finding = until(f"{refusing} is parked", lambda: journal.parked(keeps), SLOW)
        assert finding.kind is Kind.TABLE_REFUSES
        assert f"table {refusing} refuses writes" in finding.sentence
        assert "no MODIFY permission" in finding.sentence
        assert journal.states(keeps, mailbox) == {"intended", "parked"}
        for table in others:
            until(f"{table} is settled", partial(journal.is_settled, TABLES[table], mailbox))
        assert not mailbox.is_right(refusing)
        until("it is told, once", lambda: told_of(live, keeps) == ["reported"])
        matrix[refusing, refusing] = "parked"
    until(f"{refusing} is repaired", lambda: mailbox.is_right(refusing), SLOW)
    until("its repair is seen to hold", partial(journal.is_settled, keeps, mailbox), SLOW)
    until("its end is told, once", lambda: told_of(live, keeps) == ["reported", "healed"])
    matrix[refusing, refusing] = "parked, then ok"


@pytest.mark.parametrize("refusing", ["messagedeleted", "applicableflag"])
def test_an_index_that_cannot_be_read_holds_up_none_of_the_others(
    live: Scene, journal: Journal, refusing: str
) -> None:
    mailbox, keeps = Mailbox(live), TABLES[refusing]
    others = [table for table in TABLES if table != refusing]
    told = len(told_of(live, keeps, Kind.TABLE_UNREADABLE))
    with refused(live, "SELECT", refusing):
        mailbox.make_with_everything_wrong()
        await_repaired(mailbox, refusing, others, {})
        finding = until(f"{refusing} is parked", lambda: journal.parked(keeps), SLOW)
        assert finding.kind is Kind.TABLE_UNREADABLE
        assert f"table {refusing} cannot be read" in finding.sentence
        assert "no SELECT permission" in finding.sentence
        assert not mailbox.is_right(refusing)
    until(f"{refusing} is repaired", lambda: mailbox.is_right(refusing), SLOW)
    until("nothing is open there", lambda: not journal.open_ones(keeps), SLOW)
    assert told_of(live, keeps, Kind.TABLE_UNREADABLE)[told:] == ["reported", "healed"]


@pytest.mark.parametrize("refusing", OF_OTHER_FAMILIES)
def test_a_table_of_another_family_that_cannot_be_read_holds_up_none_of_the_others(
    live: Scene, refusing: str
) -> None:
    mailbox, waiting = Mailbox(live), OF_OTHER_FAMILIES[refusing]
    with refused(live, "SELECT", refusing):
        mailbox.make_with_everything_wrong()
        await_repaired(mailbox, refusing, [each for each in TABLES if each not in waiting], {})
        assert not any(mailbox.is_right(table) for table in waiting)
    for table in waiting:
        until(f"{table} is repaired", partial(mailbox.is_right, table), SLOW)


def told_of(live: Scene, name: str, kind: Kind = Kind.TABLE_REFUSES) -> list[str]:
    """What the stream's log says of a whole table, one state a line."""
    told = live.stream.findings(kind=kind.value, projection=name)
    return [str(each["state"]) for each in told]


def await_repaired(mailbox: Mailbox, refusing: str, others: list[str], matrix: Matrix) -> None:
    """Take down when each was seen to be right; what never is fails at the end, by name."""
    began, waiting = time.monotonic(), list(others)
    while waiting and time.monotonic() < began + SLOW:
        for table in [each for each in waiting if mailbox.is_right(each)]:
            matrix[refusing, table] = f"ok, {time.monotonic() - began:.0f} s"
            waiting.remove(table)
        time.sleep(0.2)
    for table in waiting:
        matrix[refusing, table] = "HELD UP"
    assert not waiting, f"while {refusing} refuses writes, not repaired: {', '.join(waiting)}"
