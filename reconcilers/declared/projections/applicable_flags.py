"""S7: `applicableFlag`, the user flags of a mailbox: one row with one set.

It holds each user flag of each message. As in James it only grows: one message does not show that a
flag is unused, and a client may still offer it. ``reconcile findings --unused-flags`` lists what
could go.
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
