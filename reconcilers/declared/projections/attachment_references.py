"""S4: `attachmentMessageId`, the messages that refer to an attachment.

James wrote it until version 3.6; up to 3.8 it reads it for an attachment that names no message.
"""

from reconcilers.declared.attachments import ID_AS_TEXT
from reconcilers.declared.family import Projection
from reconcilers.words.model import Row


def every_attachment(_truth: Row) -> bool:
    """Return True: each attachment that a message names has a row."""
    return True


ATTACHMENT_REFERENCES = Projection(
    name="attachment_references",
    table="attachmentmessageid",
    key=("attachmentidasuuid", "messageid"),
    belongs=every_attachment,
    identity="messageid",
    optional="references of attachments",
    conversions={"messageid": ID_AS_TEXT},
)
