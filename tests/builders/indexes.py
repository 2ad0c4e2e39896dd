"""The index tables for the tests of the pure core: their schema, the family with them."""

from __future__ import annotations

from dataclasses import replace

from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.family import Family, Projection, Schema, bind
from reconcilers.rows.seen import Seen
from reconcilers.words.model import Kind, Micros, Row, Value
from tests.builders.rows import LONG_AGO, MAILBOX, MESSAGE_ID, SCHEMA, SLOT, truth

FLAGS = {"flagdeleted": "boolean", "flagrecent": "boolean"}
KEY_ONLY = {"mailboxid": "timeuuid", "uid": "bigint"}
INDEX_SCHEMA: Schema = {
    **{table: columns | FLAGS for table, columns in SCHEMA.items()},
    "messagedeleted": KEY_ONLY,
    "firstunseen": KEY_ONLY,
    "mailboxrecents": {"mailboxid": "timeuuid", "recent_mesage_uid": "bigint"},
    "applicableflag": {"mailboxid": "timeuuid", "userflags": "set<text>"},
}
WITH_TABLES = tuple(each for each in MESSAGE.projections if each.table in INDEX_SCHEMA)
"""Of all that is declared, what these tests have a table for."""
INDEXED: Family = bind(replace(MESSAGE, projections=WITH_TABLES), INDEX_SCHEMA)
BY_NAME = {each.name: each for each in INDEXED.projections}
LISTS, DELETED, UNSEEN = (BY_NAME[name] for name in ("messages", "deleted_uids", "unseen_uids"))
RECENT, APPLICABLE = BY_NAME["recent_uids"], BY_NAME["applicable_flags"]

KEY_ONLY_INDEXES = (DELETED, UNSEEN, RECENT)
FLAG: dict[str, tuple[str, Value, Value]] = {
    DELETED.name: ("flagdeleted", True, False),
    UNSEEN.name: ("flagseen", False, True),
    RECENT.name: ("flagrecent", True, False),
}
"""By index: the flag it goes by, its value for what belongs there, and for what does not."""

THERE = Row({"mailboxid": MAILBOX, "uid": 7})
"""A row that is nothing but its key."""


def belonging(index: Projection, at: Micros = LONG_AGO) -> Row:
    """A truth row that has a place in this index."""
    column, inside, _ = FLAG[index.name]
    return truth({column: inside}, at=at)


def elsewhere(index: Projection, at: Micros = LONG_AGO) -> Row:
    """A truth row that has none, its flag cleared."""
    column, _, outside = FLAG[index.name]
    return truth({column: outside}, at=at)


def gathered(*flags: str) -> Row:
    """The one row of a mailbox in `applicableFlag`."""
    return Row({"mailboxid": MAILBOX, "userflags": frozenset(flags)})


def listed(actual: Row | None, *truths: Row, suspected: Kind | None = None) -> Seen:
    """One look at `SLOT` in an index, of a message that the first projection lists."""
    ids = frozenset({MESSAGE_ID})
    return Seen(SLOT, actual, truths, ids, suspected=suspected, listed=True)


def unlisted(actual: Row | None, *truths: Row, suspected: Kind | None = None) -> Seen:
    """The same, of a message that the first projection does not list."""
    ids = frozenset({MESSAGE_ID})
    return Seen(SLOT, actual, truths, ids, suspected=suspected)
