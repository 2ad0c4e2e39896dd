"""What the driver hears of steps 5 to 7."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.rows.finding import Action, Finding, State
from reconcilers.words.model import Micros, Slot


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one suspect's finding, for the driver's open findings, metrics and log.

    ``ended`` says how it was closed; what supersedes it has an outcome of its own. So has the
    finding of a table that refuses writes, at `streaming.steps.parking.WHOLE_TABLE`. ``reason``
    says why its key was published again, else it is empty.
    """

    slot: Slot
    action: Action
    finding: Finding | None
    ended: State | None = None
    at: Micros = 0
    projection: str = ""
    reason: str = ""
