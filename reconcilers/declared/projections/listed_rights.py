"""S3: `aclv2`, the rows of each mailbox's list, kept equal to the newest event of the list.

James reads a list from here, also to decide what a user may do. The whole rule:

==============================================  ==================================================
the newest event of the list (the truth)        the row of (mailbox, name)
==============================================  ==================================================
names somebody, with letters                    exists, with the same letters
does not name somebody, or without a letter     does not exist
cannot be read, or there is no event at all     as of `user_rights`
==============================================  ==================================================

Users, groups, special names (`owner`, `anyone`) and negative ones have rows. The letters are a set,
whose write time Cassandra 4 cannot read: see `reconcilers.rows.plan`.
"""

from reconcilers.declared.access_rights import has_letters
from reconcilers.declared.family import Projection

LISTED_RIGHTS = Projection(
    name="listed_rights",
    table="aclv2",
    key=("id", "key"),
    belongs=has_letters,
    identity="id",
    grants_access=True,
)
