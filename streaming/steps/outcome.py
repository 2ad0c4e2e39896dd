"""What steps 5 to 7 report to the driver."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.rows.finding import Action, Finding, State
from reconcilers.words.model import Micros, Slot


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one suspect's finding, for the driver's open findings, metrics and log.

    ``ended`` says how the finding was closed. A finding that supersedes it has an outcome of its
    own, and so has that of a refusing table, at `reconcilers.words.key.WHOLE_TABLE`. ``reason``
    says why the key was published again; it is empty if the key was not.
    """

    slot: Slot
    action: Action
    finding: Finding | None
    ended: State | None = None
    at: Micros = 0
    projection: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Repaired:
    """What became of suspects. ``again``: the outcomes of an attempt before this one are lost."""

    outcomes: list[Outcome]
    again: bool = False
