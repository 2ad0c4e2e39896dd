"""S3: `userMailboxACL`, the mailboxes in which a user has rights, kept equal to their lists.

The whole rule:

==============================================  ==================================================
the list of the mailbox (the truth)             the row of (user, mailbox)
==============================================  ==================================================
grants the user rights                          exists, with the same letters in any order
does not name the user, or without any right    does not exist: such a right should be gone
names a group, `owner`, `anyone`, negative      does not exist
cannot be read: an event that is not its JSON   is left alone, reported: `unreadable`
has no event at all                             is left alone, reported: the truth may be lost
==============================================  ==================================================
"""

from reconcilers.declared.access_rights import has_rights
from reconcilers.declared.conversion import LETTERS
from reconcilers.declared.family import Projection

USER_RIGHTS = Projection(
    name="user_rights",
    table="usermailboxacl",
    key=("username", "mailboxid"),
    belongs=has_rights,
    identity="mailboxid",
    conversions={"rights": LETTERS},
    grants_access=True,
)
