"""One suspect on its way through steps 5 to 7, with all that is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconcilers.confirm import Moment
from reconcilers.finding import Finding, Now
from reconcilers.model import Kind, Slot, Suspect, Wake
from reconcilers.seen import Seen


@dataclass(frozen=True, slots=True)
class ConfirmedSuspect:
    """A suspect as confirmed at ``moment``, in ``batch``; ``previous`` is its open finding."""

    suspect: Suspect
    seen: Seen
    previous: Finding | None
    moment: Moment
    batch: str

    @property
    def now(self) -> Now:
        """The batch and its time, as attempts are counted."""
        return Now(self.batch, self.moment.began)

    @property
    def slot(self) -> Slot:
        """Where it is."""
        return self.suspect.slot

    def source(self, column: str) -> str | None:
        """What it is about: the truth's source, in that column, else what the row was found by."""
        if self.seen.truths:
            return str(self.seen.truths[0].get(column))
        return ", ".join(sorted(str(each) for each in self.seen.consulted)) or None

    def wake(self, suspected: Kind | None) -> Wake:
        """The key, to be published and looked at again one delay later, with what was found now."""
        return replace(self.suspect, sources=self.seen.consulted).wake(suspected)
