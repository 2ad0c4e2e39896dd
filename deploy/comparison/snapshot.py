"""The truth and every table that repeats it or sums it up, read whole."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.query import SimpleStatement

from deploy.mailserver.counters import COUNTER_TABLES, quota_root
from deploy.mailserver.history import Cells, RowKey
from deploy.mailserver.indexes import UID_INDEXES

ROWS_PER_PAGE = 5000


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the tables hold.

    `truth` has all rows that claim a (mailboxid, uid), `indexed` the rows of each index by its
    projection, `counted` the counters of each counter table, by mailbox or quota root. `roots`
    names the quota root of each mailbox that exists.
    """

    truth: Mapping[RowKey, list[Cells]] = field(default_factory=dict)
    listed: Mapping[RowKey, Cells] = field(default_factory=dict)
    indexed: Mapping[str, frozenset[RowKey]] = field(default_factory=dict)
    applicable: Mapping[UUID, frozenset[str]] = field(default_factory=dict)
    counted: Mapping[str, Mapping[UUID | str, Cells]] = field(default_factory=dict)
    roots: Mapping[UUID, str] = field(default_factory=dict)


def read_whole(session: Session, keyspace: str) -> Snapshot:
    """Read all tables, one after the other.

    The session's rows must be named tuples, as they are by default.
    """

    def rows(table: str) -> Iterator[Cells]:
        return _whole_table(session, keyspace, table)

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
        },
    )


def _whole_table(session: Session, keyspace: str, table: str) -> Iterator[Cells]:
    """All rows of a table at QUORUM, a page in memory at a time."""
    statement = SimpleStatement(
        f"SELECT * FROM {keyspace}.{table}",
        fetch_size=ROWS_PER_PAGE,
        consistency_level=ConsistencyLevel.QUORUM,
    )
    for row in session.execute(statement):
        yield row._asdict()
