"""Family *message*: `imapUidTable`, one row for a message's UID in a mailbox."""

from reconcilers.declared.family import Family
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from reconcilers.declared.truths import IMAP_UIDS
from reconcilers.words.key import KeyColumn

MESSAGE = Family(
    name="message",
    truth=IMAP_UIDS,
    key=(KeyColumn("mailboxid", "timeuuid", "mailbox"), KeyColumn("uid", "bigint", "UID")),
    wakes_on=("imapuidtable", "messageidtable"),
    projections=MESSAGE_PROJECTIONS,
)
