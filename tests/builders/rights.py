"""A family whose key is not the messages': who may do what, by user and mailbox.

The truth (`aclv2`) has a mailbox's list in one partition, the projection (`userMailboxACL`) a
user's mailboxes: so the source is a mailbox, the key a text and a UUID, and the projection's row
names its source by its own key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import UUID

from reconcilers.declared.families import rights as families
from reconcilers.declared.families.right_lists import RIGHT_LISTS
from reconcilers.declared.family import Family, Projection, Schema, bind
from reconcilers.declared.truth import TruthTable
from reconcilers.words.key import KeyColumn
from reconcilers.words.model import Micros, Row, Slot, Value
from tests.builders.rows import LONG_AGO


def is_of_a_user(truth: Row) -> bool:
    """Groups have no row in the projection."""
    return not str(truth.get("key")).startswith("$")


USER_RIGHTS = Projection(
    name="user_rights",
    table="usermailboxacl",
    key=("username", "mailboxid"),
    belongs=is_of_a_user,
    identity="mailboxid",
)
DECLARED = Family(
    name="rights",
    truth=TruthTable(
        table="aclv2",
        source=KeyColumn("id", "timeuuid", "list"),
        slot=("key", "id"),
        required=("rights",),
    ),
    key=(KeyColumn("username", "text", "user"), KeyColumn("mailboxid", "timeuuid", "mailbox")),
    wakes_on=("aclv2", "usermailboxacl"),
    projections=(USER_RIGHTS,),
    suffix="_listed",
)
SCHEMA: Schema = {
    "aclv2": {"id": "timeuuid", "key": "text", "rights": "text"},
    "usermailboxacl": {"username": "text", "mailboxid": "timeuuid", "rights": "text"},
}
RIGHTS: Family = bind(DECLARED, SCHEMA)
LISTING: Projection = RIGHTS.listing

FROM_EVENTS: Family = bind(
    families.RIGHTS,
    {
        "eventstore": {"aggregateid": "text", "eventid": "int", "event": "text"},
        "usermailboxacl": SCHEMA["usermailboxacl"],
    },
)
"""The product's own family of rights, whose truth is derived from events; it has no lineage."""

LISTED: Family = bind(
    RIGHT_LISTS,
    {
        "eventstore": {"aggregateid": "text", "eventid": "int", "event": "text"},
        "aclv2": {"id": "timeuuid", "key": "text", "rights": "set<text>"},
    },
)
"""The product's own family of the rows of lists, beside `FROM_EVENTS`."""

SHARED = UUID("55555555-0000-1000-8000-000000000005")
"""A mailbox that its owner shares."""
BOB, EVE = "bob/smith@example.com", "eve 100%"


def place(user: str = BOB, mailboxid: UUID = SHARED) -> Slot:
    """Where a user's rights in a mailbox stand."""
    return Slot(user, mailboxid)


def listed_place(name: str = BOB, mailboxid: UUID = SHARED) -> Slot:
    """Where a name's rights stand in the list of a mailbox."""
    return Slot(mailboxid, name)


def listed(name: str = BOB, rights: str = "lr") -> Row:
    """What the row of a list says; a set has no write time that Cassandra 4 could read."""
    return Row({"id": SHARED, "key": name, "rights": frozenset(rights)})


def granted(user: str = BOB, rights: str = "lr", at: Micros = LONG_AGO) -> Row:
    """What the list of the mailbox says of a user."""
    return Row({"id": SHARED, "key": user, "rights": rights}, {"rights": at})


def shown(user: str = BOB, rights: str = "lr", at: Micros = LONG_AGO) -> Row:
    """What the user's row says."""
    cells: dict[str, Value] = {"username": user, "mailboxid": SHARED, "rights": rights}
    return Row(cells, {"rights": at})


def event(number: int, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    """An event of James that replaces a mailbox's list."""
    difference = {"oldAcl": {"entries": old}, "newAcl": {"entries": new}}
    told = {"eventId": number, "aggregateKey": str(SHARED), "type": "acl-updated"}
    return json.dumps({**told, "aclDiff": difference})


def stored_event(
    number: int, old: Mapping[str, str], new: Mapping[str, str], at: Micros | None = LONG_AGO
) -> Row:
    """The same, as a row of the event store."""
    cells: dict[str, Value] = {"aggregateid": SHARED, "eventid": number}
    return Row({**cells, "event": event(number, old, new)}, {} if at is None else {"event": at})
