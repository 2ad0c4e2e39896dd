"""The counters of a mailbox and the quota of a user: what James adds to them after a change."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from deploy.mailserver.history import Cells, CounterWrite
from deploy.mailserver.mail import Change, Message

QUOTA_PAUSES_S = tuple(0.1 * 2**attempt for attempt in range(8))
"""Before each of the listener's retries."""


@dataclass(frozen=True, slots=True)
class CounterTable:
    """A counter table. `share` is what one message, by its cells, adds to each counter.

    `pauses_s` are the seconds before each retry of an update without an answer.
    """

    projection: str
    table: str
    key: str
    share: Callable[[Cells], dict[str, int]]
    pauses_s: tuple[float, ...] = ()

    @property
    def counters(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self.share({}))


def mailbox_share(cells: Cells) -> dict[str, int]:
    """A message counts, and once more where it is unseen."""
    return {"count": 1, "unseen": 0 if cells.get("flagseen") else 1}


def quota_share(cells: Cells) -> dict[str, int]:
    """A message counts, and each of its octets."""
    octets = cells.get("fullcontentoctets")
    return {"messagecount": 1, "storage": octets if isinstance(octets, int) else 0}


MAILBOX_COUNTERS = CounterTable("mailbox_counters", "mailboxcounters", "mailboxid", mailbox_share)
CURRENT_QUOTA = CounterTable(
    "current_quota", "currentquota", "quotaroot", quota_share, QUOTA_PAUSES_S
)
COUNTER_TABLES = {each.projection: each for each in (MAILBOX_COUNTERS, CURRENT_QUOTA)}


def quota_root(namespace: str, user: str) -> str:
    """Whose quota a mailbox of this path counts for."""
    return f"{namespace}&{user}"


def counter_write(table: CounterTable, change: Change, owner: UUID | str) -> CounterWrite | None:
    """What James adds to the counters of a mailbox or quota root; None where nothing changes."""
    added = Counter(_share(table, change.after))
    added.subtract(_share(table, change.before))
    deltas = {counter: number for counter, number in added.items() if number}
    if not deltas:
        return None
    return CounterWrite(table.projection, change.operation, change.message.messageid, owner, deltas)


def _share(table: CounterTable, message: Message | None) -> dict[str, int]:
    return table.share(message.columns()) if message is not None else {}


def counter_statement(write: CounterWrite, keyspace: str) -> tuple[str, list[object]]:
    """The CQL of a counter update, and its values."""
    table = COUNTER_TABLES[write.projection]
    added = ", ".join(f"{counter} = {counter} + ?" for counter in write.added)
    cql = f"UPDATE {keyspace}.{table.table} SET {added} WHERE {table.key} = ?"
    return cql, [*write.added.values(), write.owner]
