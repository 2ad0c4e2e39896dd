"""What a message with an open finding counts, while nobody has decided what becomes of it. Pure.

A counter is held against the listing. Where the two sides of a message differ, and that has a
finding, the listing is not what the counter should be, so the *margin* is added:

=========================================  =====================================================
the finding                                the message counts
=========================================  =====================================================
is undecided: a person has to decide       as either side has it: the counter may be right by both
is decided, and held (breaker, pause, …)   as the truth has it
is being repaired                          as either side has it, and no correction is sent
is a fact: both sides lack the same cells  as both sides have it: it is no open message
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
"""Octets: no mailbox is larger."""
REPAIRED = frozenset({Kind.MISSING_ROW, Kind.DIFFERING_CELLS, Kind.EXTRA_ROW})
HIDDEN = frozenset({Kind.UNRESOLVED, Kind.UNREADABLE})
"""Of these not both sides are known."""


class Standing(Enum):
    """How far a finding has come."""

    UNDECIDED = "undecided"
    DECIDED = "decided"
    BEING_REPAIRED = "being repaired"


def standing_of(finding: Finding) -> Standing:
    """What is held as a repair, or accepted, will be done as the truth has it."""
    if finding.state is State.INTENDED:
        return Standing.BEING_REPAIRED
    waits = finding.state in {State.HELD, State.OBSERVED} and finding.kind in REPAIRED
    return Standing.DECIDED if waits or finding.accepted else Standing.UNDECIDED


@dataclass(frozen=True, slots=True)
class OpenMessage:
    """An open finding of the listing, as counters need it.

    ``sources`` are its message, as far as is known: several where several may claim its row.
    """

    uid: int
    sources: frozenset[UUID]
    kind: Kind
    standing: Standing


def open_message(finding: Finding) -> OpenMessage | None:
    """That of a finding; None where it is not of one UID of a mailbox."""
    sources = (UUID(each) for each in finding.sources)
    return message_at(finding.slot, sources, finding.kind, standing_of(finding))


def message_at(
    slot: Slot, sources: Iterable[UUID], kind: Kind, standing: Standing
) -> OpenMessage | None:
    """That of a finding at a slot; None if it is not of one UID, or both sides are equal there."""
    uid = slot.key[1] if len(slot.key) > 1 else None
    if not isinstance(uid, int) or kind is Kind.INCOMPLETE_IN_BOTH:
        return None
    return OpenMessage(uid, frozenset(sources), kind, standing)


@dataclass(frozen=True, slots=True)
class Margin:
    """What a mailbox may hold beyond what its listing counts: from ``least`` to ``most``."""

    least: Sums
    most: Sums

    @property
    def undecided(self) -> bool:
        """Whether the two differ."""
        return self.least != self.most


NO_MARGIN = Margin(NOTHING, NOTHING)


def margin_of(
    message: OpenMessage, listed: Sequence[Listed], truths: Sequence[Listed | None]
) -> Margin:
    """The margin of one UID, by what is listed there and by the truth rows that claim it.

    Of a truth row whose size is not known there is None.
    """
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
        sides.append(NOTHING)  # the mail server takes such a row for none
    return _beyond(shown, sides)


def _beyond(shown: Sums, sides: Sequence[Sums]) -> Margin:
    return Margin(
        {each: min(side[each] for side in sides) - shown[each] for each in Sum},
        {each: max(side[each] for side in sides) - shown[each] for each in Sum},
    )


def total_margin(margins: Iterable[Margin]) -> Margin:
    """That of several messages."""
    found = list(margins)
    return Margin(
        {each: sum(one.least[each] for one in found) for each in Sum},
        {each: sum(one.most[each] for one in found) for each in Sum},
    )
