r"""S10: `mailboxRecents`, the recent UIDs of a mailbox.

A row for each truth row with \Recent, none for any other. The column is spelled so in James.
"""

from reconcilers.declared.family import Projection
from reconcilers.words.model import Row


def is_recent(truth: Row) -> bool:
    """Whether the message has a row here."""
    return truth.get("flagrecent") is True


RECENT_UIDS = Projection(
    name="recent_uids",
    table="mailboxrecents",
    key=("mailboxid", "recent_mesage_uid"),
    belongs=is_recent,
    optional="recents",
)
