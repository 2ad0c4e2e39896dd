"""The writes of a fix as CQL, with markers and with values, and the side that is never written."""

import re
from typing import cast

import pytest
from cassandra.cluster import Session

from reconcilers.mailboxes.plan import (
    AddMailbox,
    AddPath,
    DeleteMailbox,
    DeletePath,
    MailboxWrite,
    RightSide,
    SetMailboxPath,
    SetPathId,
)
from reconcilers.mailboxes.rows import MAILBOX, PATHS, MailboxPath
from reconcilers.words.errors import NotGuarded
from streaming.tables.mailbox_writer import MailboxWriter, as_cql, as_text
from tests.builders.mailboxes import A, B, P, Q

WRITES: dict[MailboxWrite, str] = {
    AddPath(P, A, 7): "INSERT INTO james.mailboxpathv3 (namespace, user, mailboxname, mailboxid,"
    f" uidvalidity) VALUES ('#private', 'ana', 'P', {A}, 7) IF NOT EXISTS;",
    SetPathId(P, A, B, 7): f"UPDATE james.mailboxpathv3 SET mailboxid = {B}, uidvalidity = 7 WHERE"
    f" namespace = '#private' AND user = 'ana' AND mailboxname = 'P' IF mailboxid = {A};",
    DeletePath(P, A): "DELETE FROM james.mailboxpathv3 WHERE namespace = '#private' AND"
    f" user = 'ana' AND mailboxname = 'P' IF mailboxid = {A};",
    AddMailbox(A, P, 7): "INSERT INTO james.mailbox (id, mailboxbase, name, uidvalidity) VALUES"
    f" ({A}, {{namespace: '#private', user: 'ana'}}, 'P', 7) IF NOT EXISTS;",
    SetMailboxPath(A, P, Q): "UPDATE james.mailbox SET mailboxbase = {namespace: '#private', user:"
    f" 'ana'}}, name = 'Q' WHERE id = {A} IF mailboxbase = {{namespace: '#private', user: 'ana'}}"
    " AND name = 'P';",
    DeleteMailbox(A, P): f"DELETE FROM james.mailbox WHERE id = {A} IF mailboxbase = {{namespace:"
    " '#private', user: 'ana'} AND name = 'P';",
}


@pytest.mark.parametrize("write", WRITES, ids=lambda each: type(each).__name__)
def test_a_write_is_conditional_and_its_text_is_what_is_sent(write: MailboxWrite) -> None:
    query, values = as_cql(write, "james")
    assert as_text(write, "james") == WRITES[write]
    assert query.count("?") == len(values)
    assert " IF " in query
    assert f" james.{write.table} " in query
    assert "TRUNCATE" not in query


def test_quotes_and_question_marks_in_a_name_stay_what_they_are() -> None:
    odd = MailboxPath("#private", "o'neil", "what? 'now'?")
    assert "'o''neil' AND mailboxname = 'what? ''now''?' IF" in as_text(DeletePath(odd, A), "james")


class Never:
    """A session that must not be used."""


@pytest.mark.parametrize("write", WRITES, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("right", RightSide)
def test_the_right_side_is_never_written(write: MailboxWrite, right: RightSide) -> None:
    writer = MailboxWriter(cast(Session, Never()), "james", right)
    if (right, write.table) not in {(RightSide.PATH, MAILBOX), (RightSide.MAILBOX, PATHS)}:
        with pytest.raises(NotGuarded, match=re.escape(f"mailboxes.right is {right}")):
            writer.send(write)
    else:
        with pytest.raises(AttributeError):  # it would have been prepared
            writer.send(write)
