"""Family *attachment*: the row of each attachment, from the lists of messages."""

from dataclasses import replace

from reconcilers.declared.attachments import MESSAGE_LISTS
from reconcilers.declared.family import Family
from reconcilers.declared.projections.attachments import ATTACHMENTS
from reconcilers.declared.truth import Owner
from reconcilers.words.key import KeyColumn

ATTACHMENT = Family(
    name="attachment",
    truth=replace(MESSAGE_LISTS, slot=("idasuuid",), users=Owner("attachmentowners", "id", "user")),
    key=(KeyColumn("idasuuid", "uuid", "attachment"),),
    wakes_on=("messagev3", "messagev2", "attachmentv2"),
    projections=(ATTACHMENTS,),
    suffix="_attachments",
    remembered=False,
)
