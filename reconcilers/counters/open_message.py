"""What a message with an open finding counts until somebody decides it. Pure.

A counter is compared with the listing. If the two sides of a message differ and that has a finding,
the listing is not the expected value, and the *margin* is added:

=========================================  =====================================================
the finding                                the message counts
=========================================  =====================================================
is undecided: a person has to decide       as on either side: both make the counter right
is decided, and held (breaker, pause, …)   as in the truth
is being repaired                          as on either side, and no correction is sent
is a fact: both sides lack the same cells  as on both sides; it is no open message
=========================================  =====================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from reconcilers.declared.tally import NOTHING, Listed, Sum, Sums, summed
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Kind, Slot

ANY_SIZE = 2**62
"""Octets; no mailbox is larger."""
REPAIRED = frozenset({Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW})
HIDDEN = frozenset({Kind.UNRESOLVED, Kind.UNREADABLE})
"""The kinds of which one side is unknown."""


class Standing(Enum):
    """The progress of a finding."""

    UNDECIDED = "undecided"
    DECIDED = "decided"
    BEING_REPAIRED = "being repaired"


def standing_of(finding: Finding) -> Standing:
    """The progress of a finding. A held or accepted repair is decided: the truth will be copied.

    A reported finding is decided only if its own kind was accepted.
    """
    if finding.state is State.INTENDED:
        return Standing.BEING_REPAIRED
    waits = finding.state in {State.HELD, State.OBSERVED} and finding.kind in REPAIRED
    asks = finding.state is State.REPORTED and finding.kind not in finding.accepted_kinds
    return Standing.DECIDED if waits or (finding.accepted and not asks) else Standing.UNDECIDED


@dataclass(frozen=True, slots=True)
class OpenMessage:
    """An open finding of the listing; several ``sources`` (messages) may claim its row."""

    uid: int
    sources: frozenset[UUID]
    kind: Kind
    standing: Standing


def open_message(finding: Finding) -> OpenMessage | None:
    """The open message of a finding; None if the finding is not about one UID of a mailbox."""
    sources = (UUID(each) for each in finding.sources)
    return message_at(finding.slot, sources, finding.kind, standing_of(finding))


def message_at(
    slot: Slot, sources: Iterable[UUID], kind: Kind, standing: Standing
) -> OpenMessage | None:
    """The open message of a slot; None if it is not one UID, or if both sides are equal there."""
    uid = slot.key[1] if len(slot.key) > 1 else None
    if not isinstance(uid, int) or kind is Kind.INCOMPLETE_IN_BOTH:
        return None
    return OpenMessage(uid, frozenset(sources), kind, standing)


@dataclass(frozen=True, slots=True)
class Margin:
    """What a mailbox may hold beyond its listing's count: from ``least`` to ``most``."""

    least: Sums
    most: Sums

    @property
    def undecided(self) -> bool:
        """Whether ``least`` and ``most`` differ."""
        return self.least != self.most


NO_MARGIN = Margin(NOTHING, NOTHING)


def margin_of(
    message: OpenMessage, listed: Sequence[Listed], truths: Sequence[Listed | None]
) -> Margin:
    """The margin of one UID, from listed and truth rows. A truth row of unknown size is None."""
    shown = summed(listed)
    known = [each for each in truths if each is not None]
    true = summed(known)
    if message.standing is Standing.DECIDED and len(known) == len(truths):
        return _beyond(shown, [true])
    sides = [shown, true]
    if message.kind in HIDDEN or len(known) < len(truths):
        more = max(1, len(truths))
        sides += [NOTHING, {Sum.COUNT: more, Sum.UNSEEN: more, Sum.SIZE: ANY_SIZE}]
    if message.kind is Kind.INCOMPLETE_TRUTH_ROW:
        sides.append(NOTHING)  # the mail server ignores such a row
    return _beyond(shown, sides)


def _beyond(shown: Sums, sides: Sequence[Sums]) -> Margin:
    return Margin(
        {each: min(side[each] for side in sides) - shown[each] for each in Sum},
        {each: max(side[each] for side in sides) - shown[each] for each in Sum},
    )


def total_margin(margins: Iterable[Margin]) -> Margin:
    """The sum of several margins."""
    found = list(margins)
    return Margin(
        {each: sum(one.least[each] for one in found) for each in Sum},
        {each: sum(one.most[each] for one in found) for each in Sum},
    )
