"""Family *mailbox_tally*: the sums over the messages of each mailbox."""

from reconcilers.declared.family import Family
from reconcilers.declared.tallies import MAILBOX_TALLIES
from reconcilers.declared.truths import IMAP_UIDS
from reconcilers.words.key import KeyColumn

MAILBOX_TALLY = Family(
    name="mailbox_tally",
    truth=IMAP_UIDS,
    key=(KeyColumn("mailboxid", "timeuuid", "mailbox"),),
    wakes_on=(),
    projections=(),
    tallies=MAILBOX_TALLIES,
    reads=("messageidtable", "mailbox"),
)
