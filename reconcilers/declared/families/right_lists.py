"""Family *right lists*: the rows of each mailbox's list, where events of the list are the truth."""

from reconcilers.declared.access_rights import EVENTS_BY_MAILBOX
from reconcilers.declared.family import Family
from reconcilers.declared.projections.listed_rights import LISTED_RIGHTS
from reconcilers.words.key import KeyColumn

RIGHT_LISTS = Family(
    name="right_lists",
    truth=EVENTS_BY_MAILBOX,
    key=(KeyColumn("mailboxid", "timeuuid", "mailbox"), KeyColumn("name", "text", "name")),
    wakes_on=(EVENTS_BY_MAILBOX.table, LISTED_RIGHTS.table),
    projections=(LISTED_RIGHTS,),
    suffix="_right_lists",
    remembered=False,
)
