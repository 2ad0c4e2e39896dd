"""Every projection that is kept true, one file each. To add one: its file, and a line here."""

from reconcilers.family import Projection
from reconcilers.projections.applicable_flags import APPLICABLE_FLAGS
from reconcilers.projections.deleted_uids import DELETED_UIDS
from reconcilers.projections.messages import MESSAGES
from reconcilers.projections.recent_uids import RECENT_UIDS
from reconcilers.projections.unseen_uids import UNSEEN_UIDS

MESSAGE_PROJECTIONS: tuple[Projection, ...] = (
    MESSAGES,
    DELETED_UIDS,
    UNSEEN_UIDS,
    RECENT_UIDS,
    APPLICABLE_FLAGS,
)
"""The first lists the messages; the others are indexes."""
