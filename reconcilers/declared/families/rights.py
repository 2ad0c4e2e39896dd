"""Family *rights*: what the list of each mailbox grants to each user."""

from dataclasses import replace

from reconcilers.declared.access_rights import EVENTS, JSON_LISTS, LIST_ROWS
from reconcilers.declared.family import Family
from reconcilers.declared.projections.user_rights import USER_RIGHTS
from reconcilers.words.key import KeyColumn

RIGHTS = Family(
    name="rights",
    truth=EVENTS,
    key=(KeyColumn("username", "text", "user"), KeyColumn("mailboxid", "timeuuid", "mailbox")),
    wakes_on=(EVENTS.table, USER_RIGHTS.table),
    projections=(USER_RIGHTS,),
    suffix="_rights",
    remembered=False,
)

TRUTHS = {each.table: each for each in (EVENTS, LIST_ROWS, JSON_LISTS)}
"""Where versions of James keep a mailbox's list, by table; newer ones keep its events."""


def rights_from(table: str) -> Family:
    """The family with this table as its truth. Raises KeyError if no list is kept there."""
    truth = TRUTHS[table]
    reads = () if truth.newer is None else (truth.newer.table,)
    return replace(RIGHTS, truth=truth, wakes_on=(table, USER_RIGHTS.table), reads=reads)
