"""Every family of truth and projections. To add one: its file, and a line here."""

from reconcilers.families.message import MESSAGE
from reconcilers.family import Family

FAMILIES: tuple[Family, ...] = (MESSAGE,)
