"""The truth and every table that repeats it or sums it up, read whole."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from deploy.mailserver.counters import COUNTER_TABLES, quota_root
from deploy.mailserver.history import Cells, RowKey
from deploy.mailserver.indexes import UID_INDEXES
from deploy.mailserver.rights import AccessList, read_event

ROWS_PER_PAGE = 5000


class MailboxAt(NamedTuple):
    """Where a mailbox is."""

    namespace: str
    user: str
    name: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the tables hold.

    `truth` has all rows that claim a (mailboxid, uid), `indexed` the rows of each index by its
    projection, `counted` the counters of each counter table, by mailbox or quota root. `roots`
    names the quota root of each mailbox that exists.

    `lists` has the newest list of rights of each mailbox (None: an event that cannot be read),
    `user_rights` and `list_rights` the letters of each row of it. `contents` names the attachments
    that each message lists, `references` the attachment that each reference names.
    """

    truth: Mapping[RowKey, list[Cells]] = field(default_factory=dict)
    listed: Mapping[RowKey, Cells] = field(default_factory=dict)
    indexed: Mapping[str, frozenset[RowKey]] = field(default_factory=dict)
    applicable: Mapping[UUID, frozenset[str]] = field(default_factory=dict)
    counted: Mapping[str, Mapping[UUID | str, Cells]] = field(default_factory=dict)
    roots: Mapping[UUID, str] = field(default_factory=dict)
    lists: Mapping[UUID, AccessList | None] = field(default_factory=dict)
    user_rights: Mapping[RowKey, str] = field(default_factory=dict)
    list_rights: Mapping[RowKey, str] = field(default_factory=dict)
    contents: Mapping[UUID, tuple[str, ...]] = field(default_factory=dict)
    references: Mapping[RowKey, str] = field(default_factory=dict)
    mailboxes: Mapping[UUID, MailboxAt] = field(default_factory=dict)
    paths: Mapping[MailboxAt, UUID] = field(default_factory=dict)


def read_whole(session: Session, keyspace: str) -> Snapshot:
    """Read all tables, one after the other.

    The session's rows must be named tuples, as they are by default.
    """
    return snapshot_of(lambda table: _whole_table(session, keyspace, table))


def snapshot_of(rows: Callable[[str], Iterable[Cells]]) -> Snapshot:
    """What the tables hold, each read by its name as the driver returns its rows."""
    return replace(
        _messages(rows),
        lists=newest_lists(rows("eventstore")),
        user_rights={
            (row["mailboxid"], row["username"]): row["rights"] or ""
            for row in rows("usermailboxacl")
        },
        list_rights={
            (row["id"], row["key"]): "".join(sorted(row["rights"] or ())) for row in rows("aclv2")
        },
        contents={
            row["messageid"]: tuple(each.id for each in row["attachments"] or ())
            for table in ("messagev2", "messagev3")
            for row in rows(table)
        },
        references={
            (row["attachmentidasuuid"], row["messageid"]): row["attachmentid"] or ""
            for row in rows("attachmentmessageid")
        },
        mailboxes={row["id"]: _path_of(row) for row in rows("mailbox")},
        paths={
            MailboxAt(row["namespace"], row["user"], row["mailboxname"]): row["mailboxid"]
            for row in rows("mailboxpathv3")
        },
    )


def _messages(rows: Callable[[str], Iterable[Cells]]) -> Snapshot:
    """Messages, their indexes and counters."""
    truth: defaultdict[RowKey, list[Cells]] = defaultdict(list)
    for row in rows("imapuidtable"):
        truth[row["mailboxid"], row["uid"]].append(row)
    return Snapshot(
        truth=dict(truth),
        listed={(row["mailboxid"], row["uid"]): row for row in rows("messageidtable")},
        indexed={
            index.projection: frozenset(
                (row["mailboxid"], row[index.column]) for row in rows(index.table)
            )
            for index in UID_INDEXES
        },
        applicable={
            row["mailboxid"]: frozenset(row["userflags"] or ()) for row in rows("applicableflag")
        },
        counted={
            name: {row[counters.key]: row for row in rows(counters.table)}
            for name, counters in COUNTER_TABLES.items()
        },
        roots={
            row["id"]: quota_root(row["mailboxbase"].namespace, row["mailboxbase"].user)
            for row in rows("mailbox")
            if row["mailboxbase"] is not None
        },
    )


def newest_lists(events: Iterable[Cells]) -> dict[UUID, AccessList | None]:
    """The list of each mailbox by its newest event; None if one of its events cannot be read.

    Other aggregates share the table; their ids are no mailbox's.
    """
    lists: dict[UUID, AccessList | None] = {}
    for row in sorted(events, key=lambda row: (row["aggregateid"], row["eventid"])):
        try:
            mailboxid = UUID(row["aggregateid"])
        except ValueError:
            continue
        granted = _list_after(row["event"])
        if granted is None or lists.get(mailboxid, granted) is not None:
            lists[mailboxid] = granted
    return lists


def _list_after(event: str) -> AccessList | None:
    """The list after an event of a mailbox; None if it cannot be read."""
    try:
        return read_event(event)[1]
    except (ValueError, KeyError, TypeError):
        return None


def _path_of(row: Cells) -> MailboxAt:
    """The path that a row of mailbox names; empty parts where it lacks them."""
    base = row["mailboxbase"]
    namespace, user = (base.namespace, base.user) if base else ("", "")
    return MailboxAt(namespace or "", user or "", row["name"] or "")


def _whole_table(session: Session, keyspace: str, table: str) -> Iterator[Cells]:
    """All rows of a table at QUORUM, a page in memory at a time."""
    statement = SimpleStatement(
        f"SELECT * FROM {keyspace}.{table}",
        fetch_size=ROWS_PER_PAGE,
        consistency_level=ConsistencyLevel.QUORUM,
    )
    for row in session.execute(statement):
        yield row._asdict()
