"""A finding at `SLOT` of the listing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconcilers.declared.writes import SetCells
from reconcilers.rows.acceptance import Accepted, Reason
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Kind, Micros
from reconcilers.words.waiting import Wait
from tests.builders.rows import FAMILY, LONG_AGO, PROJECTION, SLOT

OURS = LONG_AGO + 1
"""The write time of the repair."""
SET_FLAGSEEN = SetCells(PROJECTION, SLOT, OURS, {"flagseen": True})
_FINDING = Finding(
    family=FAMILY.name,
    projection=PROJECTION.name,
    slot=SLOT,
    source=None,
    kind=Kind.DIFFERING_CELLS,
    state=State.INTENDED,
    sentence="it differed",
    found_at=LONG_AGO,
    attempts=1,
    batch="batch 1",
    writes=(SET_FLAGSEEN,),
)


def finding(state: State = State.INTENDED, **changes: Any) -> Finding:
    """A differing cell of which the repair was tried once, unless told otherwise."""
    return replace(_FINDING, state=state, **changes)


def acceptance(
    kind: Kind, wait: Wait | None = None, found_at: Micros = LONG_AGO, at: Micros = LONG_AGO
) -> frozenset[Accepted]:
    """What a person has accepted for one reason of a finding."""
    return frozenset({Accepted(Reason(kind, wait), found_at, at)})


def waiting(**changes: Any) -> Finding:
    """A missing row that is held, and of which no repair was tried."""
    untried: dict[str, Any] = {"kind": Kind.MISSING_ROW, "attempts": 0, "batch": "", "writes": ()}
    return finding(State.HELD, **(untried | {"sentence": "is missing"} | changes))
