"""What each kind of fault is to a run: a pair of functions."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Injector:
    """Two functions: `heal` ends what `inject` began, and returns when the process answers.

    Both raise EmbeddedError if they fail.
    """

    inject: Callable[[], object]
    heal: Callable[[], None]


def nothing() -> None:
    """What heals a fault that Spark heals itself."""
