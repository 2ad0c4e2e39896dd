"""The writes to index tables: guarded by C − D, as CQL, and through the journal."""

from __future__ import annotations

import json

import pytest

from checkpoints import codec
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Projection, keeping
from reconcilers.declared.writes import AddRow, AddToSet, DeleteRow, Write
from reconcilers.rows.plan import plan
from reconcilers.rows.seen import Seen
from reconcilers.words.errors import Misconfigured
from reconcilers.words.model import Difference, Kind, Report
from streaming.tables.cql import as_cql
from tests.builders.indexes import (
    APPLICABLE,
    DELETED,
    INDEXED,
    KEY_ONLY_INDEXES,
    RECENT,
    THERE,
    UNSEEN,
    belonging,
    elsewhere,
    gathered,
    listed,
    unlisted,
)
from tests.builders.rows import DELAY, MAILBOX, MOMENT, NOW, SLOT, truth
from tests.builders.slots import uid_of

SETTLED = NOW - DELAY
KEYSPACE = "apache_james"

by_key = pytest.mark.parametrize("index", KEY_ONLY_INDEXES, ids=lambda index: index.name)
any_attempt = pytest.mark.parametrize("attempt", [0, 1])


def planned(index: Projection, seen: Seen, kind: Kind, attempt: int = 0) -> tuple[Write, ...]:
    answer = plan(index, seen, Difference(kind, ("userflags",)), MOMENT, attempt)
    assert not isinstance(answer, Report)
    return answer


# --- plan ----------------------------------------------------------------------------------------


@by_key
@any_attempt
def test_a_missing_row_is_added_older_than_what_may_still_arrive(
    index: Projection, attempt: int
) -> None:
    writes = planned(index, listed(None, belonging(index)), Kind.MISSING_ROW, attempt)
    assert writes == (AddRow(index, SLOT, SETTLED),)


@by_key
@any_attempt
def test_an_extra_row_is_deleted_older_than_what_may_still_arrive(
    index: Projection, attempt: int
) -> None:
    expected = (DeleteRow(index, SLOT, SETTLED),)
    cleared = listed(THERE, elsewhere(index))
    assert planned(index, cleared, Kind.EXTRA_ROW, attempt) == expected
    assert planned(index, unlisted(THERE), Kind.EXTRA_ROW, attempt) == expected


@any_attempt
def test_only_the_flags_that_a_mailbox_lacks_are_added(attempt: int) -> None:
    seen = listed(gathered("work", "stale"), truth(userflags=frozenset({"work", "new"})))
    writes = planned(APPLICABLE, seen, Kind.DIFFERING_CELLS, attempt)
    assert writes == (AddToSet(APPLICABLE, SLOT, SETTLED, "userflags", frozenset({"new"})),)


def test_a_mailbox_without_a_row_gets_all_flags_of_the_message() -> None:
    flags = frozenset({"work", "new"})
    writes = planned(APPLICABLE, listed(None, truth(userflags=flags)), Kind.DIFFERING_CELLS)
    assert writes == (AddToSet(APPLICABLE, SLOT, SETTLED, "userflags", flags),)


# --- CQL -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "key"),
    [
        (DELETED, "messagedeleted (mailboxid, uid)"),
        (UNSEEN, "firstunseen (mailboxid, uid)"),
        (RECENT, "mailboxrecents (mailboxid, recent_mesage_uid)"),
    ],
)
def test_a_row_is_added_by_its_key(index: Projection, key: str) -> None:
    query, values = as_cql(AddRow(index, SLOT, SETTLED), KEYSPACE)
    assert query == f"INSERT INTO {KEYSPACE}.{key} VALUES (?, ?) USING TIMESTAMP ?"
    assert values == (MAILBOX, uid_of(SLOT), SETTLED)


def test_a_recent_uid_is_deleted_by_the_name_that_james_gave_the_column() -> None:
    query, values = as_cql(DeleteRow(RECENT, SLOT, SETTLED), KEYSPACE)
    assert query == (
        f"DELETE FROM {KEYSPACE}.mailboxrecents USING TIMESTAMP ?"
        " WHERE mailboxid = ? AND recent_mesage_uid = ?"
    )
    assert values == (SETTLED, MAILBOX, uid_of(SLOT))


def test_flags_are_added_to_the_one_row_of_a_mailbox() -> None:
    write = AddToSet(APPLICABLE, SLOT, SETTLED, "userflags", frozenset({"new"}))
    query, values = as_cql(write, KEYSPACE)
    assert query == (
        f"UPDATE {KEYSPACE}.applicableflag USING TIMESTAMP ?"
        " SET userflags = userflags + ? WHERE mailboxid = ?"
    )
    assert values == (SETTLED, {"new"}, MAILBOX)


# --- the journal ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        *(AddRow(index, SLOT, SETTLED) for index in KEY_ONLY_INDEXES),
        DeleteRow(RECENT, SLOT, SETTLED),
        AddToSet(APPLICABLE, SLOT, SETTLED, "userflags", frozenset({"new"})),
    ],
    ids=lambda write: f"{type(write).__name__} {write.projection.name}",
)
def test_a_write_to_an_index_comes_back_from_the_journal(write: Write) -> None:
    stored = json.loads(codec.text_of(codec.write_to_json(write, INDEXED)))
    assert codec.write_from_json(stored, INDEXED) == write


def test_a_write_to_an_index_that_is_no_longer_kept_is_refused() -> None:
    stored = codec.write_to_json(AddRow(RECENT, SLOT, SETTLED), INDEXED)
    with pytest.raises(Misconfigured, match="recent_uids"):
        codec.write_from_json(stored, keeping(MESSAGE, ("deleted_uids",)))
