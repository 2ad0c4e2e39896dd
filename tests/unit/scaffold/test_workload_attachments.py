"""What the mail server sends for the attachments of a message, in both shapes."""

import random
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from deploy.mailserver.attachments import REFERENCES, Shape, id_as_uuid
from deploy.mailserver.faults import FaultKind, FaultPlan, Faults, StatementTimeoutError
from deploy.mailserver.mail import Attachment, Content, Flags
from deploy.mailserver.mailbag import random_content
from deploy.mailserver.mailserver import MailServer
from deploy.mailserver.variant import Variant
from tests.fakes.memory_cassandra import KEYSPACE, MemoryCassandra

FIRST = Attachment("first", "text/plain", 7, name="a.txt", cid="c1", inline=True)
SECOND = Attachment("second", "image/png", 8)
MAILBOX = uuid.uuid1()
TABLES = ("attachmentv2", "attachmentmessageid", "messagev3", "imapuidtable")


class Scene:
    """A mail server of one shape on tables in memory."""

    def __init__(self, shape: Shape, faults: Faults | None = None) -> None:
        self.session = MemoryCassandra()
        variant = Variant(attachments=shape)
        self.server = MailServer(self.session, KEYSPACE, variant=variant, faults=faults)

    def sent(self, operation: Callable[[], object]) -> list[tuple[str, list[Any]]]:
        """What an operation writes to tables of attachments and contents, and to the truth."""
        begun = len(self.session.log)
        operation()
        log = [(cql.replace(f"{KEYSPACE}.", ""), each) for cql, each in self.session.log[begun:]]
        return [each for each in log if each[0][:6] != "SELECT" and _table(each[0]) in TABLES]

    def held(self, table: str) -> int:
        return len(self.session.tables[table].rows(()))


def _table(cql: str) -> str:
    words = cql.split()
    return words[1] if words[0] == "UPDATE" else words[2]


def content(*attachments: Attachment) -> Content:
    return replace(random_content(random.Random(1)), attachments=attachments)


def test_an_attachment_is_written_before_the_list_and_the_list_before_the_truth() -> None:
    scene, message = Scene(Shape.SINCE_3_7), content(FIRST, SECOND)
    first, second, listing, truth = scene.sent(
        lambda: scene.server.append(MAILBOX, message, Flags())
    )
    cql = (
        "INSERT INTO attachmentv2 (idasuuid, id, blobid, type, message_id, size)"
        " VALUES (?, ?, ?, ?, ?, ?)"
    )
    row = [id_as_uuid("first"), "first", "blob-first", "text/plain", message.messageid, 7]
    assert first == (cql, row)
    assert second[1][1] == "second"
    assert listing[0].startswith("UPDATE messagev3 SET internaldate = ?")
    assert listing[0].endswith("attachments = ? + attachments WHERE messageid = ?")
    assert listing[1][-2] == [("first", "a.txt", "c1", True), ("second", None, None, False)]
    assert truth[0].startswith("INSERT INTO imapuidtable")


def test_an_older_james_writes_a_reference_and_no_message_id() -> None:
    scene, message = Scene(Shape.UNTIL_3_6), content(FIRST)
    row, (cql, values), *_ = scene.sent(lambda: scene.server.append(MAILBOX, message, Flags()))
    assert "message_id" not in row[0]
    assert cql.startswith(
        "INSERT INTO attachmentmessageid (attachmentidasuuid, attachmentid, messageid)"
    )
    assert values[:3] == [id_as_uuid("first"), "first", str(message.messageid)]


@pytest.mark.parametrize("shape", Shape)
def test_what_is_deleted_goes_with_its_attachments_and_references(shape: Shape) -> None:
    scene = Scene(shape)
    message = scene.server.append(MAILBOX, content(FIRST, SECOND), Flags())
    sent = scene.sent(lambda: scene.server.expunge(message))
    assert [_table(cql) for cql, _ in sent] == [
        "imapuidtable",
        *["attachmentv2"] * 2,
        *["attachmentmessageid"] * 2,
        "messagev3",
    ]
    assert [scene.held(table) for table in TABLES] == [0, 0, 0, 0]


def test_an_attachment_that_another_message_refers_to_stays() -> None:
    scene = Scene(Shape.UNTIL_3_6)
    message = scene.server.append(MAILBOX, content(FIRST), Flags())
    scene.server.append(MAILBOX, content(FIRST), Flags())
    scene.server.expunge(message)
    assert [scene.held(table) for table in TABLES] == [1, 1, 1, 1]


def test_a_reference_that_fails_keeps_the_message_out() -> None:
    plan = FaultPlan(1, 1, 1, (FaultKind.APPLIED_BUT_TIMED_OUT,), projection=REFERENCES)
    scene = Scene(Shape.UNTIL_3_6, Faults([plan]))
    with pytest.raises(StatementTimeoutError):
        scene.server.append(MAILBOX, content(FIRST), Flags())
    assert [scene.held(table) for table in TABLES] == [1, 1, 0, 0]
