"""Family *user_tally*: the sums over the mailboxes of each user, by quota root."""

from reconcilers.declared.family import Family
from reconcilers.declared.tallies import USER_TALLIES
from reconcilers.declared.tally import QuotaRoot
from reconcilers.declared.truths import IMAP_UIDS
from reconcilers.words.key import KeyColumn


def spelled(text: str) -> str:
    """The quota root as our tables name it; accepts the spelling of either of James's tables."""
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
