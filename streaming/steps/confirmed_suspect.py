"""One suspect on its way through steps 5 to 7, with everything that was read for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconcilers.declared.family import Family, Projection
from reconcilers.limits.gate import Admission
from reconcilers.limits.hold import Hold
from reconcilers.rows.acceptance import NONE_ACCEPTED
from reconcilers.rows.confirm import Moment
from reconcilers.rows.decision import decided
from reconcilers.rows.finding import AND, Finding, Now, State
from reconcilers.rows.seen import Seen, wakes_of
from reconcilers.words.model import Kind, Slot, Suspect, Wake


@dataclass(frozen=True, slots=True)
class ConfirmedSuspect:
    """A suspect as confirmed at ``moment``, in ``batch``; ``previous`` is its open finding.

    ``hold`` is set if a person wants the key left alone.
    """

    suspect: Suspect
    seen: Seen
    previous: Finding | None
    moment: Moment
    batch: str
    hold: Hold | None = None

    def admitted(self, admission: Admission) -> Admission:
        """The admission for this suspect: its repair waits while the key is on hold."""
        return (
            admission if self.hold is None else replace(admission, repairs_wait=self.hold.waiting)
        )

    @property
    def decided(self) -> frozenset[Kind]:
        """The kinds that a person has accepted for the row as it is."""
        return decided(self.previous, self.seen.actual, self.moment.began)

    @property
    def is_begun(self) -> bool:
        """Whether an attempt before this one has written to the journal what it repairs."""
        last = self.previous
        return last is not None and last.state is State.INTENDED and last.batch == self.batch

    @property
    def now(self) -> Now:
        """The batch and its time, by which attempts are counted."""
        return Now(self.batch, self.moment.began)

    @property
    def slot(self) -> Slot:
        """The slot of the suspect."""
        return self.suspect.slot

    def source(self, column: str) -> str | None:
        """The truth row's value in ``column``, or the consulted sources if there is no row."""
        if self.seen.truths:
            return AND.join(dict.fromkeys(str(each.get(column)) for each in self.seen.truths))
        return AND.join(sorted(str(each) for each in self.seen.consulted)) or None

    def wake(self, suspected: Kind | None) -> Wake:
        """The key to publish, so that it is looked at again one delay later."""
        return replace(self.suspect, sources=self.seen.consulted).wake(suspected)

    def wakes(self, family: Family, suspected: Kind | None) -> list[Wake]:
        """The same, once for each source that only a wake can name."""
        return wakes_of(family, replace(self.suspect, sources=self.seen.consulted), suspected)

    def unreadable(self, why: str) -> ConfirmedSuspect:
        """A copy that says why the server cannot read something of this suspect."""
        return replace(self, suspect=replace(self.suspect, unreadable=why))

    def finding(
        self, family: Family, projection: Projection, kind: Kind, state: State, sentence: str
    ) -> Finding:
        """Its finding for the journal: when it was first found, both sides as read now."""
        previous = self.previous
        return Finding(
            family=family.name,
            projection=projection.name,
            slot=self.slot,
            source=self.source(family.truth.source.name),
            kind=kind,
            state=state,
            sentence=sentence,
            found_at=previous.found_at if previous is not None else self.moment.began,
            oldest=self.suspect.oldest,
            before=self.seen.actual,
            accepted=NONE_ACCEPTED if previous is None else previous.accepted,
            truth=self.seen.truths,
        )

    def as_tried_before(self, finding: Finding) -> Finding:
        """``finding`` with the attempts of the previous one: waiting is no attempt."""
        previous = self.previous
        if previous is None or not previous.writes:
            return replace(finding, attempts=0, batch="", tried_at=0, writes=())
        return replace(
            finding,
            attempts=previous.attempts,
            batch=previous.batch,
            tried_at=previous.tried_at,
            before=previous.before,
            writes=previous.writes,
        )


def with_sources(family: Family, suspect: Suspect, found: Mapping[Slot, Finding]) -> Suspect:
    """The suspect with the sources of the open finding at its slot: they may claim it, too."""
    finding, source = found.get(suspect.slot), family.truth.source
    if finding is None:
        return suspect
    named = (source.value(each) for each in finding.sources)
    return replace(suspect, sources=suspect.sources.union(named))
