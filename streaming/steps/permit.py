"""What a worker may write of its share of a slice: asked again before each write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconcilers.policy import Admission


@dataclass(frozen=True, slots=True)
class Permit:
    """What the driver lets through, and whether this process's own clock may be believed.

    ``clock_moved`` says how far it has moved since this process measured the nodes' clocks, None
    where it stands.
    """

    admission: Admission
    clock_moved: Callable[[], str | None]
