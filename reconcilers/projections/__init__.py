"""Every projection that is kept true, one file each. To add one: its file, and a line here."""

from reconcilers.family import Projection
from reconcilers.projections.messages import MESSAGES

MESSAGE_PROJECTIONS: tuple[Projection, ...] = (MESSAGES,)
