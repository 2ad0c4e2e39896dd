"""The pauses that persons requested, ended ones included (the port)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from reconcilers.limits.pause import Pause
from reconcilers.words.model import Micros


@dataclass(frozen=True, slots=True)
class Resumed:
    """The end of a pause: when (µs), by whom, why."""

    at: Micros
    who: str
    reason: str


class Pauses(Protocol):
    """The pauses of one installation. An end has cells of its own, so no clock can undo it."""

    def begin(self, pause: Pause) -> None:
        """Store a pause, which is in force for every later reader when this returns."""

    def replace(self, before: Collection[Pause], pause: Pause, by: Resumed) -> None:
        """Store a pause and end the ones before it, atomically."""

    def standing(self) -> tuple[Pause, ...]:
        """The pauses that nobody has ended, oldest first; the time of some may be over."""

    def end(self, pause: Pause, by: Resumed) -> None:
        """End a pause; a second end only replaces the details of the first."""

    def history(self) -> tuple[tuple[Pause, Resumed | None], ...]:
        """All pauses, oldest first, each with its end, if any."""
