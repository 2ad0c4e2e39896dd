"""Family *message*: `imapUidTable`, one row for a message's UID in a mailbox."""

from reconcilers.family import Family
from reconcilers.key import KeyColumn
from reconcilers.projections import MESSAGE_PROJECTIONS
from reconcilers.truths import IMAP_UIDS

MESSAGE = Family(
    name="message",
    truth=IMAP_UIDS,
    key=(KeyColumn("mailboxid", "timeuuid", "mailbox"), KeyColumn("uid", "bigint", "UID")),
    wakes_on=("imapuidtable", "messageidtable"),
    projections=MESSAGE_PROJECTIONS,
)
