"""Family *message*: `imapUidTable`, one row for a message's UID in a mailbox."""

from reconcilers.family import Family
from reconcilers.projections import MESSAGE_PROJECTIONS

MESSAGE = Family(
    name="message",
    truth="imapuidtable",
    partition="messageid",
    slot=("mailboxid", "uid"),
    required=("modseq", "internaldate", "bodystartoctet", "fullcontentoctets", "headercontent"),
    wakes_on=("imapuidtable", "messageidtable"),
    projections=MESSAGE_PROJECTIONS,
)
