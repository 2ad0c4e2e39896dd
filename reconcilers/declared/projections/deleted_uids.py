r"""S8: `messageDeleted`, the UIDs of a mailbox that are marked as deleted.

James reads it to expunge. A truth row with \Deleted has a row, any other has none.
"""

from reconcilers.declared.family import Projection
from reconcilers.words.model import Row


def is_deleted(truth: Row) -> bool:
    """Whether the message has a row here."""
    return truth.get("flagdeleted") is True


DELETED_UIDS = Projection(
    name="deleted_uids", table="messagedeleted", key=("mailboxid", "uid"), belongs=is_deleted
)
