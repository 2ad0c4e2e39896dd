"""S7: `applicableFlag`, the user flags that are in use in a mailbox: one row, one set.

It holds each user flag of each message. It only grows, here as in James: that no message has a flag
any more cannot be seen from one message, and a client may offer it still. What could go is read
when somebody asks (``reconcile findings --unused-flags``).
"""

from reconcilers.declared.family import Projection
from reconcilers.words.model import Row


def has_user_flags(truth: Row) -> bool:
    """Whether the message adds anything to its mailbox's row."""
    return bool(truth.get("userflags"))


APPLICABLE_FLAGS = Projection(
    name="applicable_flags",
    table="applicableflag",
    key=("mailboxid",),
    belongs=has_user_flags,
    collects="userflags",
)
