r"""S10: `mailboxRecents`, the recent UIDs of a mailbox.

A truth row with \Recent has a row, any other has none. The column is misspelled in James, too.
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
