"""Family *user_tally*: what the mailboxes of each user sum up to, by quota root."""

from reconcilers.family import Family
from reconcilers.tallies import USER_TALLIES

USER_TALLY = Family(
    name="user_tally",
    truth="imapuidtable",
    partition="messageid",
    slot=("mailboxid", "uid"),
    required=("modseq", "internaldate", "bodystartoctet", "fullcontentoctets", "headercontent"),
    wakes_on=(),
    projections=(),
    tallies=USER_TALLIES,
    reads=("messageidtable", "mailbox", "mailboxpathv3"),
)
