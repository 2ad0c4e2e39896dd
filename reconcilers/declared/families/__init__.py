"""All families of truth and projections. To add one, add its file and a line here."""

from reconcilers.declared.families.attachment import ATTACHMENT
from reconcilers.declared.families.attachment_reference import ATTACHMENT_REFERENCE
from reconcilers.declared.families.mailbox import MAILBOX
from reconcilers.declared.families.mailbox_tally import MAILBOX_TALLY
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.families.right_lists import RIGHT_LISTS
from reconcilers.declared.families.rights import RIGHTS
from reconcilers.declared.families.user_tally import USER_TALLY
from reconcilers.declared.family import Family

FAMILIES: tuple[Family, ...] = (
    MESSAGE,
    RIGHTS,
    RIGHT_LISTS,
    MAILBOX,
    ATTACHMENT,
    ATTACHMENT_REFERENCE,
    MAILBOX_TALLY,
    USER_TALLY,
)


def family_named(name: str) -> Family:
    """The family with this name. Raises KeyError if there is none."""
    return {each.name: each for each in FAMILIES}[name]
