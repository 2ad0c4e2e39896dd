"""Family *mailbox_tally*: what the messages of each mailbox sum up to."""

from reconcilers.family import Family
from reconcilers.key import KeyColumn
from reconcilers.tallies import MAILBOX_TALLIES
from reconcilers.truths import IMAP_UIDS

MAILBOX_TALLY = Family(
    name="mailbox_tally",
    truth=IMAP_UIDS,
    key=(KeyColumn("mailboxid", "timeuuid", "mailbox"),),
    wakes_on=(),
    projections=(),
    tallies=MAILBOX_TALLIES,
    reads=("messageidtable", "mailbox"),
)
