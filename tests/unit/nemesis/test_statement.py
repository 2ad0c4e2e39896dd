"""What a statement writes, read from its CQL; a statement of unknown shape is refused."""

import random
from datetime import UTC, datetime
from uuid import UUID

import pytest

from deploy.mailserver.attachments import Shape
from deploy.mailserver.mail import Flags
from deploy.mailserver.mailbag import random_content, with_attachments
from deploy.mailserver.mailserver import MailServer
from deploy.mailserver.variant import Variant
from deploy.nemesis.statement import UserWriteKind, user_statement
from deploy.nemesis.tables import TABLES
from tests.fakes.memory_cassandra import KEYSPACE, MemoryCassandra

ID = UUID("00000000-0000-1000-8000-000000000001")
TEXT = str(ID)


def test_an_update_of_cells_and_elements() -> None:
    told = user_statement(
        "UPDATE mail.messageidtable USING TIMESTAMP ? SET modseq = ?, internaldate = ?, "
        "userflags = userflags + ?, userflags = userflags - ? WHERE mailboxid = ? AND uid = ?",
        [5, 7, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), {"b", "a"}, {"c"}, ID, 3],
    )
    assert told is not None
    assert (told.table, told.kind, told.key) == ("messageidtable", UserWriteKind.UPDATE, (TEXT, 3))
    assert told.cells == {"modseq": 7, "internaldate": 1000}
    assert (told.added, told.removed) == ({"userflags": ["a", "b"]}, {"userflags": ["c"]})
    assert (told.time, told.conditional) == (5, False)


def test_a_lightweight_transaction_has_no_time() -> None:
    told = user_statement(
        "UPDATE mail.imapuidtable SET modseq = ? "
        "WHERE messageid = ? AND mailboxid = ? AND uid = ? IF modseq = ?",
        [8, ID, ID, 3, 7],
    )
    assert told is not None
    assert (told.key, told.cells) == ((TEXT, TEXT, 3), {"modseq": 8})
    assert (told.time, told.conditional) == (None, True)


def test_an_insert_has_its_time_last_and_replaces_sets() -> None:
    told = user_statement(
        "INSERT INTO mail.applicableflag (mailboxid, userflags) VALUES (?, ?) USING TIMESTAMP ?",
        [ID, set(), 9],
    )
    assert told is not None
    assert (told.kind, told.key, told.time) == (UserWriteKind.INSERT, (TEXT,), 9)
    assert told.replaced == {"userflags": []}


def test_a_delete_may_name_a_prefix_of_the_key() -> None:
    cql = "DELETE FROM mail.imapuidtable USING TIMESTAMP ? WHERE messageid = ? AND mailboxid = ?"
    told = user_statement(cql, [4, ID, ID])
    assert told is not None
    assert (told.kind, told.key, told.time) == (UserWriteKind.DELETE, (TEXT, TEXT), 4)


def test_a_counter_is_added_to() -> None:
    told = user_statement(
        "UPDATE mail.mailboxcounters SET count = count + ?, unseen = unseen + ? "
        "WHERE mailboxid = ?",
        [1, -1, ID],
    )
    assert told is not None
    assert (told.kind, told.cells) == (UserWriteKind.COUNT, {"count": 1, "unseen": -1})


def test_a_read_writes_nothing() -> None:
    assert user_statement("SELECT * FROM mail.mailbox WHERE id = ?", [ID]) is None


@pytest.mark.parametrize(
    "cql",
    [
        "TRUNCATE mail.mailbox",
        "INSERT INTO mail.unknown (id) VALUES (?)",
        "UPDATE mail.mailbox USING TTL ? SET name = ? WHERE id = ?",
        "UPDATE mail.mailbox SET name = ?, names[?] = ? WHERE id = ?",
        "DELETE name FROM mail.mailbox WHERE id = ?",
    ],
)
def test_another_shape_is_refused(cql: str) -> None:
    with pytest.raises(ValueError, match="cannot record"):
        user_statement(cql, [1, 2, 3, 4])


@pytest.mark.parametrize("strong", [True, False])
@pytest.mark.parametrize("shape", list(Shape))
def test_every_statement_of_the_mail_server_is_read_whole(strong: bool, shape: Shape) -> None:
    session = MemoryCassandra()
    variant = Variant(strong, strong, shape)
    server = MailServer(session, KEYSPACE, variant=variant)
    mailboxid = server.create_mailbox("ana", "INBOX")
    server.rename_mailbox(mailboxid, "Post")
    for letters in ("lr", "lrs", ""):
        server.share(mailboxid, "ben", letters)
    server.share(mailboxid, "ben", "l")
    content = with_attachments(random_content(random.Random(1)), random.Random(4))
    message = server.append(mailboxid, content, Flags(frozenset(), frozenset({"a"})))
    changed = server.set_flags(message, Flags(frozenset({"seen"}), frozenset({"b"})))
    server.expunge(changed)
    server.delete_mailbox(mailboxid)
    written = [each for each in session.log if not each[0].startswith("SELECT")]
    for cql, values in written:
        told = user_statement(cql, values)
        assert told is not None
        groups = (told.cells, told.replaced, told.added, told.removed)
        conditions = cql.count("IF modseq")
        assert len(values) == (
            len(told.key) + sum(map(len, groups)) + (told.time is not None) + conditions
        )
    assert {str(user_statement(*each).table) for each in written} <= TABLES.keys()  # type: ignore[union-attr]
