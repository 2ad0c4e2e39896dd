"""Family *attachment reference*: the messages of an attachment, from their lists."""

from reconcilers.declared.attachments import MESSAGE_LISTS
from reconcilers.declared.family import Family
from reconcilers.declared.projections.attachment_references import ATTACHMENT_REFERENCES
from reconcilers.words.key import KeyColumn

ATTACHMENT_REFERENCE = Family(
    name="attachment_reference",
    truth=MESSAGE_LISTS,
    key=(
        KeyColumn("attachmentidasuuid", "uuid", "attachment"),
        KeyColumn("message", "text", "message", mark="-"),
    ),
    wakes_on=("messagev3", "messagev2", "attachmentmessageid"),
    projections=(ATTACHMENT_REFERENCES,),
    suffix="_references",
    remembered=False,
)
