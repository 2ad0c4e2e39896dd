"""Whether one repair is carried out now, and if not, why. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconcilers.declared.family import Family, Projection
from reconcilers.limits.gate import Admission
from reconcilers.rows.finding import State
from reconcilers.words.model import Kind, Repair
from reconcilers.words.waiting import Wait, Waiting

OBSERVED = Waiting(Wait.OBSERVING, "")
"""The wait of each finding of a stream that only observes; it needs no text."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A repair that is not carried out: its finding's state, kind, wait or reported reason."""

    state: State
    kind: Kind
    waits: Waiting | None = None
    reason: str = ""


def refusal(
    repair: Repair,
    family: Family,
    projection: Projection,
    admission: Admission,
    may_lose_rows: Callable[[], bool],
) -> Refusal | None:
    """Why a repair is not carried out now, None if it is.

    ``may_lose_rows`` answers for the group (mailbox) of a row to be removed. It reads the whole
    group, so it is called last, and only for a removal that nothing else holds back.
    """
    kind = repair.difference.kind
    if projection.only_by:
        return Refusal(
            State.HELD, kind, Waiting(Wait.COMMAND, f"`{projection.only_by}` repairs it")
        )
    removal = kind is Kind.EXTRA_ROW and not projection.is_index
    memory = admission.memory_wait if repair.rests_on_memory else None
    held = admission.repairs_wait or (admission.removals_wait if removal else None) or memory
    if admission.observe:
        return Refusal(State.OBSERVED, kind, memory or OBSERVED)
    if held is not None:
        return Refusal(State.HELD, kind, held)
    if removal and not may_lose_rows():
        lost = f"but this {family.group.label} has lost most of its truth, or of a part"
        told = f"{lost}: held for a person"
        return Refusal(State.REPORTED, Kind.MAILBOX_WITHOUT_TRUTH, reason=told)
    return None
