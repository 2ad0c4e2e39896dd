"""What a person accepts: one reason of one finding, and nothing that is found later. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from reconcilers.words.model import Kind, Micros
from reconcilers.words.waiting import Wait


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a finding is not repaired: its kind, and what it waits for (None if it is reported).

    ``error`` is that of a counter, stored minus right, by sum; empty for a row.
    """

    kind: Kind
    wait: Wait | None = None
    error: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        waits = [] if self.wait is None else [self.wait.value]
        shown = ", ".join([*waits, *(f"{name} {value:+d}" for name, value in self.error)])
        return f"{self.kind.value} ({shown})" if shown else self.kind.value


@dataclass(frozen=True, slots=True)
class Accepted:
    """An acceptance of one reason, for the finding that was found ``found_at`` (µs).

    ``at`` (µs) is when; for a finding of many rows, those counted by then are covered.
    """

    reason: Reason
    found_at: Micros
    at: Micros


NONE_ACCEPTED: frozenset[Accepted] = frozenset()
