"""The truth of disturbed runs, as the mail server writes it before anybody counts.

A row for each change, with what it adds: to sum them up is to count the mailbox anew.
"""

from deploy.mailserver.history import CounterWrite
from tests.bench.counter_rows.wire import Place

DDL = (
    "CREATE TABLE IF NOT EXISTS {keyspace}.truth (mailboxid timeuuid, change int,"
    " count bigint, unseen bigint, PRIMARY KEY (mailboxid, change))"
)
WRITE = "INSERT INTO {keyspace}.truth (mailboxid, change, count, unseen) VALUES (?, ?, ?, ?)"
READ = "SELECT change, count, unseen FROM {keyspace}.truth WHERE mailboxid = ?"


def create(place: Place) -> None:
    """Make the table unless it is there."""
    place.session.execute(DDL.format(keyspace=place.keyspace))


def enter(place: Place, number: int, write: CounterWrite) -> None:
    """Write a change, by its number among all. Raises TROUBLE; may be repeated."""
    sums = [write.added.get(column, 0) for column in ("count", "unseen")]
    place.ask(WRITE, [write.owner, number, *sums])
