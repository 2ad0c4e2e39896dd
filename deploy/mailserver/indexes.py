"""The index tables of a mailbox: its deleted, unseen and recent UIDs, and its user flags.

After each change James adds a UID where the message now belongs, and deletes it where it no longer
does; none of these statements is retried. The user flags in use only grow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from deploy.mailserver.history import NO_UID, Cells, ProjectionWrite, Statement
from deploy.mailserver.mail import Change, Message

APPLICABLE_FLAGS = "applicable_flags"


@dataclass(frozen=True, slots=True)
class UidIndex:
    """A table of UIDs. `belongs` tells by a message's cells whether its UID has a row here."""

    projection: str
    table: str
    column: str
    belongs: Callable[[Cells], bool]


UID_INDEXES = (
    UidIndex("unseen_uids", "firstunseen", "uid", lambda cells: not cells.get("flagseen")),
    UidIndex(
        "recent_uids",
        "mailboxrecents",
        "recent_mesage_uid",
        lambda cells: bool(cells.get("flagrecent")),
    ),
    UidIndex("deleted_uids", "messagedeleted", "uid", lambda cells: bool(cells.get("flagdeleted"))),
)
BY_PROJECTION = {index.projection: index for index in UID_INDEXES}
INDEX_PROJECTIONS = (*BY_PROJECTION, APPLICABLE_FLAGS)


def index_writes(change: Change) -> Iterator[ProjectionWrite]:
    """What James sends to the index tables after a change, in its order."""
    for index in UID_INDEXES:
        statement = _uid_statement(index, change)
        if statement is not None:
            uid = change.message.uid
            cells: Cells = {index.column: uid} if statement is Statement.INSERT else {}
            yield _write(index.projection, statement, change, uid, cells)
    if change.after is not None:
        known = change.before.flags.user if change.before else frozenset()
        new = change.after.flags.user - known
        if new:
            yield _write(APPLICABLE_FLAGS, Statement.FLAGS, change, NO_UID, {}, new)


def _uid_statement(index: UidIndex, change: Change) -> Statement | None:
    """A removed message is deleted from every index, whatever its flags were."""
    if change.after is None:
        return Statement.DELETE
    belonged, belongs = _belongs(index, change.before), _belongs(index, change.after)
    if belonged == belongs:
        return None
    return Statement.INSERT if belongs else Statement.DELETE


def _belongs(index: UidIndex, message: Message | None) -> bool:
    return message is not None and index.belongs(message.columns())


def _write(
    projection: str,
    statement: Statement,
    change: Change,
    uid: int,
    cells: Cells,
    added: frozenset[str] = frozenset(),
) -> ProjectionWrite:
    return ProjectionWrite(
        statement=statement,
        operation=change.operation,
        messageid=change.message.messageid,
        mailboxid=change.message.mailboxid,
        uid=uid,
        cells=cells,
        added=added,
        projection=projection,
    )


def index_statement(
    write: ProjectionWrite, keyspace: str, timestamp_us: int
) -> tuple[str, list[object]]:
    """The CQL of a write to an index table, and its values."""
    if write.projection == APPLICABLE_FLAGS:
        cql = (
            f"UPDATE {keyspace}.applicableflag USING TIMESTAMP ? "
            "SET userflags = userflags + ? WHERE mailboxid = ?"
        )
        return cql, [timestamp_us, set(write.added), write.mailboxid]
    index = BY_PROJECTION[write.projection]
    table, column = f"{keyspace}.{index.table}", index.column
    if write.statement is Statement.DELETE:
        cql = f"DELETE FROM {table} USING TIMESTAMP ? WHERE mailboxid = ? AND {column} = ?"
        return cql, [timestamp_us, *write.row]
    cql = f"INSERT INTO {table} (mailboxid, {column}) VALUES (?, ?) USING TIMESTAMP ?"
    return cql, [*write.row, timestamp_us]
