"""Many consistent messages quickly, and consistent changes of them: for benchmarks."""

import itertools
import random
from collections.abc import Iterable, Iterator
from uuid import UUID

from cassandra import ConsistencyLevel
from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import SimpleStatement

from deploy.demo.mail import Message
from deploy.demo.mailbag import random_content, random_flags
from deploy.demo.mailserver import new_timeuuid, now_ms

STATEMENTS_IN_FLIGHT = 200
ROWS_PER_CHUNK = 10_000


def fill(
    session: Session, keyspace: str, messages: int, mailboxes: int, seed: int = 1
) -> list[UUID]:
    """Write messages to both tables, spread evenly; returns the new mailbox ids.

    Plain UPDATEs without lightweight transactions. Raises the driver's error at the first
    statement that fails.
    """
    chance = random.Random(seed)
    mailboxids = [new_timeuuid() for _ in range(mailboxes)]
    columns = list(_values(_new_message(chance, mailboxids[0], 1)))
    marks = ", ".join("?" * len(columns))
    inserts = [
        f"INSERT INTO {keyspace}.{table} ({', '.join(columns)}) VALUES ({marks})"
        for table in ("imapuidtable", "messageidtable")
    ]
    rows = (
        list(_values(_new_message(chance, mailboxids[n % mailboxes], n // mailboxes + 1)).values())
        for n in range(messages)
    )
    _execute_all(session, inserts, rows)
    return mailboxids


def touch(session: Session, keyspace: str, rows: int) -> int:
    """Turn the seen flag over on so many rows, both tables alike; returns how many it found.

    Each changed row gets the next modseq. Rows without messageid are left alone.
    """
    read = SimpleStatement(
        f"SELECT messageid, mailboxid, uid, modseq, flagseen FROM {keyspace}.messageidtable",
        fetch_size=ROWS_PER_CHUNK,
    )
    changes = (
        [not row.flagseen, row.modseq + 1, row.mailboxid, row.uid, row.messageid]
        for row in session.execute(read)
        if row.messageid is not None and row.modseq is not None
    )
    updates = [
        f"UPDATE {keyspace}.messageidtable SET flagseen = ?, modseq = ? "
        "WHERE mailboxid = ? AND uid = ?",
        f"UPDATE {keyspace}.imapuidtable SET flagseen = ?, modseq = ? "
        "WHERE mailboxid = ? AND uid = ? AND messageid = ?",
    ]
    return _execute_all(session, updates, itertools.islice(changes, rows))


def _execute_all(session: Session, statements: list[str], rows: Iterable[list[object]]) -> int:
    """Run each statement for each row (with as many of its values as it has marks)."""
    prepared = [session.prepare(cql) for cql in statements]
    done = 0
    for chunk in _chunks(rows):
        for statement in prepared:
            statement.consistency_level = ConsistencyLevel.QUORUM
            marks = len(statement.column_metadata)
            arguments = [row[:marks] for row in chunk]
            execute_concurrent_with_args(session, statement, arguments, STATEMENTS_IN_FLIGHT)
        done += len(chunk)
    return done


def _chunks(rows: Iterable[list[object]]) -> Iterator[list[list[object]]]:
    remaining = iter(rows)
    while chunk := list(itertools.islice(remaining, ROWS_PER_CHUNK)):
        yield chunk


def _new_message(chance: random.Random, mailboxid: UUID, uid: int) -> Message:
    return Message(random_content(chance), mailboxid, uid, uid, random_flags(chance), now_ms())


def _values(message: Message) -> dict[str, object]:
    return {
        "mailboxid": message.mailboxid,
        "uid": message.uid,
        "messageid": message.messageid,
        "userflags": set(message.flags.user),
        **message.columns(),
    }
