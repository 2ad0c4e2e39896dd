"""Family *mailbox_tally*: what the messages of each mailbox sum up to."""

from reconcilers.family import Family
from reconcilers.tallies import MAILBOX_TALLIES

MAILBOX_TALLY = Family(
    name="mailbox_tally",
    truth="imapuidtable",
    partition="messageid",
    slot=("mailboxid", "uid"),
    required=("modseq", "internaldate", "bodystartoctet", "fullcontentoctets", "headercontent"),
    wakes_on=(),
    projections=(),
    tallies=MAILBOX_TALLIES,
    reads=("messageidtable", "mailbox"),
)
