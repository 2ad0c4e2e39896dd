"""Items in groups of a size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

K = TypeVar("K")


def in_groups(items: Sequence[K], most: int) -> Iterator[Sequence[K]]:
    """The items in order, in groups of at most ``most``."""
    for start in range(0, len(items), most):
        yield items[start : start + most]
