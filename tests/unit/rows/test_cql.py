"""A guarded write as CQL: its statement, its values in the statement's order, its timestamp."""

from __future__ import annotations

from typing import cast

import pytest

from reconcilers.declared.writes import AddRow, AddToSet, DeleteRow, RemoveFromSet, SetCells, Write
from reconcilers.words.errors import NotGuarded
from streaming.tables.cql import as_cql
from tests.builders.indexes import APPLICABLE, DELETED, LISTS, RECENT, UNSEEN
from tests.builders.rows import MAILBOX, SLOT

AT = 1_700_000_000_000_001
FLAGS = frozenset({"a", "b"})


@pytest.mark.parametrize(
    ("write", "query", "values"),
    [
        (
            SetCells(LISTS, SLOT, AT, {"modseq": 5, "flagseen": None, "headercontent": "h"}),
            "UPDATE mail.messageidtable USING TIMESTAMP ?"
            " SET flagseen = ?, headercontent = ?, modseq = ? WHERE mailboxid = ? AND uid = ?",
            (AT, None, "h", 5, MAILBOX, 7),
        ),
        (
            AddToSet(LISTS, SLOT, AT, "userflags", FLAGS),
            "UPDATE mail.messageidtable USING TIMESTAMP ?"
            " SET userflags = userflags + ? WHERE mailboxid = ? AND uid = ?",
            (AT, {"a", "b"}, MAILBOX, 7),
        ),
        (
            RemoveFromSet(LISTS, SLOT, AT, "userflags", FLAGS),
            "UPDATE mail.messageidtable USING TIMESTAMP ?"
            " SET userflags = userflags - ? WHERE mailboxid = ? AND uid = ?",
            (AT, {"a", "b"}, MAILBOX, 7),
        ),
        (
            AddToSet(APPLICABLE, SLOT, AT, "userflags", FLAGS),
            "UPDATE mail.applicableflag USING TIMESTAMP ?"
            " SET userflags = userflags + ? WHERE mailboxid = ?",
            (AT, {"a", "b"}, MAILBOX),
        ),
        (
            AddRow(DELETED, SLOT, AT),
            "INSERT INTO mail.messagedeleted (mailboxid, uid) VALUES (?, ?) USING TIMESTAMP ?",
            (MAILBOX, 7, AT),
        ),
        (
            AddRow(UNSEEN, SLOT, AT),
            "INSERT INTO mail.firstunseen (mailboxid, uid) VALUES (?, ?) USING TIMESTAMP ?",
            (MAILBOX, 7, AT),
        ),
        (
            AddRow(RECENT, SLOT, AT),
            "INSERT INTO mail.mailboxrecents (mailboxid, recent_mesage_uid) VALUES (?, ?)"
            " USING TIMESTAMP ?",
            (MAILBOX, 7, AT),
        ),
        (
            DeleteRow(LISTS, SLOT, AT),
            "DELETE FROM mail.messageidtable USING TIMESTAMP ? WHERE mailboxid = ? AND uid = ?",
            (AT, MAILBOX, 7),
        ),
        (
            DeleteRow(RECENT, SLOT, AT),
            "DELETE FROM mail.mailboxrecents USING TIMESTAMP ?"
            " WHERE mailboxid = ? AND recent_mesage_uid = ?",
            (AT, MAILBOX, 7),
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Write) else "",
)
def test_each_write_carries_its_guard(write: Write, query: str, values: tuple[object, ...]) -> None:
    assert as_cql(write, "mail") == (query, values)


def test_a_write_of_another_kind_is_refused() -> None:
    class Rewrite(Write):
        """None of ours."""

    with pytest.raises(NotGuarded, match="Rewrite is not a write of ours"):
        as_cql(cast(Write, Rewrite(LISTS, SLOT, AT)), "mail")
