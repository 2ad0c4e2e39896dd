"""Many consistent messages quickly, and consistent changes of them: for benchmarks."""

import itertools
import random
from collections.abc import Iterable, Iterator
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent
from cassandra.query import BatchStatement, BatchType, PreparedStatement, SimpleStatement

from deploy.mailserver.mail import Message
from deploy.mailserver.mailbag import random_content, random_flags
from deploy.mailserver.mailserver import new_timeuuid, now_ms

BATCHES_IN_FLIGHT = 32
ROWS_PER_BATCH = 10
"""More would make Cassandra warn of batches over several partitions."""
ROWS_PER_CHUNK = 5_000
"""So many rows go to the truth, then the same rows to the projection."""


def fill(
    session: Session, keyspace: str, messages: int, mailboxes: int, seed: int = 1
) -> list[UUID]:
    """Write messages to both tables, spread evenly; returns the new mailbox ids.

    Plain UPDATEs without lightweight transactions. Raises the driver's error at the first
    statement that fails.
    """
    chance = random.Random(seed)
    mailboxids = [new_timeuuid() for _ in range(mailboxes)]
    rows = (
        _new_message(chance, mailboxids[number % mailboxes], number // mailboxes + 1)
        for number in range(messages)
    )
    columns = list(_new_message(chance, mailboxids[0], 1).columns())
    cells = ", ".join(f"{column} = ?" for column in columns) + ", userflags = userflags + ?"
    writes = [
        f"UPDATE {keyspace}.imapuidtable SET {cells} "
        "WHERE messageid = ? AND mailboxid = ? AND uid = ?",
        f"UPDATE {keyspace}.messageidtable SET {cells}, messageid = ? "
        "WHERE mailboxid = ? AND uid = ?",
    ]
    _write_both(session, writes, map(_values, rows))
    return mailboxids


def touch(session: Session, keyspace: str, rows: int, flag: str = "flagseen") -> int:
    """Turn a flag over on so many rows, both tables alike; returns how many it found.

    Each changed row gets the next modseq. Partial rows of the projection are left alone.
    """
    read = SimpleStatement(
        f"SELECT messageid, mailboxid, uid, modseq, {flag} AS flag FROM {keyspace}.messageidtable",
        fetch_size=ROWS_PER_CHUNK,
    )
    changes = (
        [not row.flag, row.modseq + 1, row.mailboxid, row.uid, row.messageid]
        for row in session.execute(read)
        if row.messageid is not None and row.modseq is not None
    )
    cells = f"{flag} = ?, modseq = ?"
    writes = [
        f"UPDATE {keyspace}.imapuidtable SET {cells} "
        "WHERE mailboxid = ? AND uid = ? AND messageid = ?",
        f"UPDATE {keyspace}.messageidtable SET {cells} WHERE mailboxid = ? AND uid = ?",
    ]
    return _write_both(session, writes, itertools.islice(changes, rows))


def _write_both(session: Session, writes: list[str], rows: Iterable[list[object]]) -> int:
    """Run each write for each row, with as many of the row's values as it has marks."""
    prepared = [session.prepare(cql) for cql in writes]
    done = 0
    for chunk in _chunks(rows, ROWS_PER_CHUNK):
        for statement in prepared:
            marks = len(statement.column_metadata)
            batches = [
                (_batch(statement, [row[:marks] for row in part]), None)
                for part in _chunks(chunk, ROWS_PER_BATCH)
            ]
            execute_concurrent(session, batches, BATCHES_IN_FLIGHT)
        done += len(chunk)
    return done


def _batch(statement: PreparedStatement, rows: list[list[object]]) -> BatchStatement:
    batch = BatchStatement(BatchType.UNLOGGED, consistency_level=ConsistencyLevel.QUORUM)
    for row in rows:
        batch.add(statement, row)
    return batch


def _chunks(rows: Iterable[list[object]], size: int) -> Iterator[list[list[object]]]:
    remaining = iter(rows)
    while chunk := list(itertools.islice(remaining, size)):
        yield chunk


def _new_message(chance: random.Random, mailboxid: UUID, uid: int) -> Message:
    return Message(random_content(chance), mailboxid, uid, uid, random_flags(chance), now_ms())


def _values(message: Message) -> list[object]:
    """The columns, the user flags, then the ids: the order of the marks in `fill`."""
    cells = [*message.columns().values(), set(message.flags.user)]
    return [*cells, message.messageid, message.mailboxid, message.uid]
