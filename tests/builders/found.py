"""Findings and suspects of rows in `MAILBOX`, and findings of counters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import KeyValue, Kind, Slot, Suspect
from streaming.counters.counter_row import CounterRow
from tests.builders.rows import FAMILY, MAILBOX, NOW, PROJECTION

Place = Slot | int
"""A slot, or the UID of one in `MAILBOX`."""


def slot_of(place: Place) -> Slot:
    """The slot that a UID, or a slot, stands for."""
    return place if isinstance(place, Slot) else Slot(MAILBOX, place)


def finding_at(
    place: Place, kind: Kind = Kind.MISSING_ROW, state: State = State.INTENDED, **changes: Any
) -> Finding:
    """A finding of the listing of messages, found at `NOW`."""
    slot, listing = slot_of(place), PROJECTION.name
    return replace(Finding(FAMILY.name, listing, slot, None, kind, state, "", NOW), **changes)


def finding_of(counter: CounterRow, state: State = State.HELD, **changes: Any) -> Finding:
    """A finding of a counter that is wrong, found at `NOW`."""
    of = replace(finding_at(counter.slot, Kind.COUNTER_DRIFT, state), family=counter.family)
    return replace(of, **{"projection": counter.tally.name, **changes})


def suspect_at(
    place: Place,
    kind: Kind | None = Kind.MISSING_ROW,
    sources: Iterable[KeyValue] = (),
    **changes: Any,
) -> Suspect:
    """A suspect of the listing of messages, of no known age."""
    suspect = Suspect(slot_of(place), frozenset(sources), kind, PROJECTION.name)
    return replace(suspect, **changes)
