"""Family *user_tally*: what the mailboxes of each user sum up to, by quota root."""

from reconcilers.family import Family
from reconcilers.key import KeyColumn
from reconcilers.tallies import USER_TALLIES
from reconcilers.tally import QuotaRoot
from reconcilers.truths import IMAP_UIDS


def spelled(text: str) -> str:
    """A quota root as our own tables name it: both of James's tables' spellings are taken."""
    return str(QuotaRoot.of(text))


USER_TALLY = Family(
    name="user_tally",
    truth=IMAP_UIDS,
    key=(KeyColumn("quotaroot", "text", "quota root", mark="&", spelling=spelled),),
    wakes_on=(),
    projections=(),
    tallies=USER_TALLIES,
    reads=("messageidtable", "mailbox", "mailboxpathv3"),
)
