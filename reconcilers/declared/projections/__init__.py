"""The projections of messages. To add one, add its file and a line here."""

from reconcilers.declared.family import Projection
from reconcilers.declared.projections.applicable_flags import APPLICABLE_FLAGS
from reconcilers.declared.projections.deleted_uids import DELETED_UIDS
from reconcilers.declared.projections.messages import MESSAGES
from reconcilers.declared.projections.recent_uids import RECENT_UIDS
from reconcilers.declared.projections.unseen_uids import UNSEEN_UIDS

MESSAGE_PROJECTIONS: tuple[Projection, ...] = (
    MESSAGES,
    DELETED_UIDS,
    UNSEEN_UIDS,
    RECENT_UIDS,
    APPLICABLE_FLAGS,
)
"""The first is the listing; the others are indexes."""
