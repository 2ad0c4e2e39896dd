"""Lists of rights: the event of a change, and what James's subscribers write after it. Pure.

As in James 3.8.1: `MailboxACLAggregate`, `ACLUpdatedDTO`, `ACLDiff`, and the DAOs
`CassandraUserMailboxRightsDAO` and `CassandraACLDAOV2`.
"""

import json
from collections.abc import Iterator, Mapping
from uuid import UUID

from deploy.mailserver.history import ProjectionWrite, Statement

USER_RIGHTS, LIST_RIGHTS = "user_rights", "listed_rights"
"""`usermailboxacl`, what a user may do elsewhere; `aclv2`, the list of a mailbox name by name."""
RIGHTS_PROJECTIONS = (USER_RIGHTS, LIST_RIGHTS)
ACL_UPDATED = "acl-updated"
SEVERAL_USERS = frozenset({"anyone", "authenticated", "owner"})

AccessList = Mapping[str, str]
"""The letters of each name, in alphabetical order. `$` begins a group, `-` what a name may not."""


def is_user(name: str) -> bool:
    """Whether a name of a list grants rights to one user, who then has a row."""
    return name[:1] not in ("$", "-") and name not in SEVERAL_USERS


def with_rights(granted: AccessList, name: str, letters: str) -> AccessList:
    """The list with these rights for the name; without the name if there are no letters."""
    others = {each: rights for each, rights in granted.items() if each != name}
    return {**others, name: "".join(sorted(letters))} if letters else others


def event_of(number: int, mailboxid: UUID, before: AccessList, after: AccessList) -> str:
    """The event of a change as James stores it, JSON."""
    told = {
        "eventId": number,
        "aggregateKey": str(mailboxid),
        "type": ACL_UPDATED,
        "aclDiff": {"oldAcl": {"entries": before}, "newAcl": {"entries": after}},
    }
    return json.dumps(told, separators=(",", ":"))


def read_event(event: str) -> tuple[int, AccessList | None]:
    """The number of an event, and the list after it; None if it is of another type."""
    told = json.loads(event)
    if told["type"] != ACL_UPDATED:
        return told["eventId"], None
    return told["eventId"], told["aclDiff"]["newAcl"]["entries"]


def rights_writes(
    operation: str, mailboxid: UUID, before: AccessList, after: AccessList
) -> Iterator[ProjectionWrite]:
    """What the subscribers write after a change: rows of users first, then the list's."""
    yield from user_writes(operation, mailboxid, before, after)
    for name in _changed(before, after):
        old, new = before.get(name, ""), after.get(name, "")
        changed = Statement.REPLACE if old and new else Statement.FLAGS
        yield ProjectionWrite(
            statement=changed,
            operation=operation,
            messageid=None,
            mailboxid=mailboxid,
            uid=name,
            added=frozenset(new),
            removed=frozenset() if new else frozenset(old),
            projection=LIST_RIGHTS,
        )


def user_writes(
    operation: str, mailboxid: UUID, before: AccessList, after: AccessList
) -> Iterator[ProjectionWrite]:
    """The rows of users: written whole for who has rights now, deleted for who had some."""
    for name in filter(is_user, _changed(before, after)):
        granted = after.get(name)
        yield ProjectionWrite(
            statement=Statement.INSERT if granted else Statement.DELETE,
            operation=operation,
            messageid=None,
            mailboxid=mailboxid,
            uid=name,
            cells={"rights": granted} if granted else {},
            projection=USER_RIGHTS,
        )


def _changed(before: AccessList, after: AccessList) -> Iterator[str]:
    """The names with other rights than before: new ones, those that are gone, the others."""
    yield from (name for name in after if name not in before)
    yield from (name for name in before if name not in after)
    yield from (name for name in after if before.get(name, after[name]) != after[name])


def rights_statement(
    write: ProjectionWrite, keyspace: str, timestamp_us: int
) -> tuple[str, list[object]]:
    """The CQL of a write to usermailboxacl or aclv2, and its values."""
    if write.projection == LIST_RIGHTS:
        sign, letters = _assignment(write)
        table = f"{keyspace}.aclv2"
        cql = f"UPDATE {table} USING TIMESTAMP ? SET rights = {sign} WHERE id = ? AND key = ?"
        return cql, [timestamp_us, letters, *write.row]
    table = f"{keyspace}.usermailboxacl"
    if write.statement is Statement.DELETE:
        cql = f"DELETE FROM {table} USING TIMESTAMP ? WHERE username = ? AND mailboxid = ?"
        return cql, [timestamp_us, write.uid, write.mailboxid]
    cql = f"INSERT INTO {table} (username, mailboxid, rights) VALUES (?, ?, ?) USING TIMESTAMP ?"
    return cql, [write.uid, write.mailboxid, write.cells["rights"], timestamp_us]


def _assignment(write: ProjectionWrite) -> tuple[str, set[str]]:
    if write.statement is Statement.REPLACE:
        return "?", set(write.added)
    return ("rights + ?", set(write.added)) if write.added else ("rights - ?", set(write.removed))
