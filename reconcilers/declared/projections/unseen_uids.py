r"""S9: `firstUnseen`, all unseen UIDs of a mailbox (readers take the lowest).

A truth row without \Seen has a row, any other has none.
"""

from reconcilers.declared.family import Projection
from reconcilers.words.model import Row


def is_unseen(truth: Row) -> bool:
    """Whether the message has a row here."""
    return truth.get("flagseen") is not True


UNSEEN_UIDS = Projection(
    name="unseen_uids", table="firstunseen", key=("mailboxid", "uid"), belongs=is_unseen
)
