"""What the other tables should hold of a filled keyspace: indexes, mailboxes, counters, quotas."""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from cassandra.cluster import Session
from cassandra.concurrent import execute_concurrent
from cassandra.query import SimpleStatement

USERS = 20
PAGE = 5_000
IN_FLIGHT = 64


def fill_the_rest(session: Session, keyspace: str) -> None:
    """Everything that James would have written of the messages that are listed."""
    counts: Counter[UUID] = Counter()
    unseen: Counter[UUID] = Counter()
    octets: Counter[UUID] = Counter()

    def indexed() -> Iterator[Any]:
        marks = {
            table: session.prepare(
                f"INSERT INTO {keyspace}.{table} (mailboxid, {uid}) VALUES (?, ?)"
            )
            for table, uid in (
                ("messagedeleted", "uid"),
                ("firstunseen", "uid"),
                ("mailboxrecents", "recent_mesage_uid"),
            )
        }
        flags = session.prepare(
            f"UPDATE {keyspace}.applicableflag SET userflags = userflags + ? WHERE mailboxid = ?"
        )
        for row in _listed(session, keyspace):
            counts[row.mailboxid] += 1
            unseen[row.mailboxid] += not row.flagseen
            octets[row.mailboxid] += row.fullcontentoctets
            if row.flagdeleted:
                yield marks["messagedeleted"], (row.mailboxid, row.uid)
            if not row.flagseen:
                yield marks["firstunseen"], (row.mailboxid, row.uid)
            if row.flagrecent:
                yield marks["mailboxrecents"], (row.mailboxid, row.uid)
            if row.userflags:
                yield flags, (set(row.userflags), row.mailboxid)

    execute_concurrent(session, indexed(), IN_FLIGHT)
    execute_concurrent(session, _sums(session, keyspace, counts, unseen, octets), IN_FLIGHT)


def _listed(session: Session, keyspace: str) -> list[Any]:
    """All at once: the next page cannot be waited for where the driver asks for more to write."""
    query = (
        "SELECT mailboxid, uid, flagseen, flagrecent, flagdeleted, userflags, fullcontentoctets"
        f" FROM {keyspace}.messageidtable"
    )
    return list(session.execute(SimpleStatement(query, fetch_size=PAGE)))


def _sums(
    session: Session,
    keyspace: str,
    counts: Counter[UUID],
    unseen: Counter[UUID],
    octets: Counter[UUID],
) -> Iterator[Any]:
    path = session.prepare(
        f"INSERT INTO {keyspace}.mailboxpathv3"
        " (namespace, user, mailboxname, mailboxid, uidvalidity) VALUES ('#private', ?, ?, ?, 1)"
    )
    mailbox = session.prepare(
        f"INSERT INTO {keyspace}.mailbox (id, mailboxbase, name, uidvalidity) VALUES (?, ?, ?, 1)"
    )
    counters = session.prepare(
        f"UPDATE {keyspace}.mailboxcounters SET count = count + ?, unseen = unseen + ?"
        " WHERE mailboxid = ?"
    )
    quota = session.prepare(
        f"UPDATE {keyspace}.currentquota SET messagecount = messagecount + ?,"
        " storage = storage + ? WHERE quotaroot = ?"
    )
    for number, mailboxid in enumerate(counts):
        user, name = f"user-{number % USERS}", str(mailboxid)
        yield path, (user, name, mailboxid)
        yield mailbox, (mailboxid, ("#private", user), name)
        yield counters, (counts[mailboxid], unseen[mailboxid], mailboxid)
        yield quota, (counts[mailboxid], octets[mailboxid], f"#private&{user}")
