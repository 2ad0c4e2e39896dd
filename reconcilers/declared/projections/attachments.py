"""S4: `attachmentV2`, an attachment with the id of its content, and its message.

James writes each row once, before the message that names it. Without ``message_id`` nobody can read
the attachment: James asks which messages its reader may read. James 3.6 and older did not write it.
"""

from reconcilers.declared.family import Projection
from reconcilers.words.model import Row


def every_named(_truth: Row) -> bool:
    """Return True: each attachment that a message names has a row."""
    return True


ATTACHMENTS = Projection(
    name="attachments",
    table="attachmentv2",
    key=("idasuuid",),
    belongs=every_named,
    identity="message_id",
    optional="attachments",
    keeps=("blobid",),
)
