"""S2: `mailboxPathV3`, the mailbox that is registered at a path. It is reported, never written.

The whole rule:

==========================================  ======================================================
the mailboxes that name the path            the row of the path
==========================================  ======================================================
one                                         has its id
none                                        does not exist
several                                     is reported, whatever it has: an operator merges them
==========================================  ======================================================

Which side is right is not known, so only `reconcile mailboxes` repairs, while James is offline.
"""

from reconcilers.declared.family import Projection
from reconcilers.declared.mailbox_names import PATH
from reconcilers.words.model import Row


def every_path(_truth: Row) -> bool:
    """Return True: each path that a mailbox names is registered."""
    return True


MAILBOX_PATHS = Projection(
    name="mailbox_paths",
    table="mailboxpathv3",
    key=PATH,
    belongs=every_path,
    identity="mailboxid",
    partition=("namespace", "user"),
    only_by="reconcile mailboxes",
)
