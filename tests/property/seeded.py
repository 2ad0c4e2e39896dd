"""Many runs, each made by a seed that is named when it fails, and what all of them must meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

Made = TypeVar("Made")


def played(holds: Callable[[int], Made], seeds: Iterable[int]) -> Iterator[Made]:
    """The run of each seed; one that does not hold is named with its seed."""
    for seed in seeds:
        try:
            yield holds(seed)
        except AssertionError as broken:
            broken.add_note(f"{holds.__name__}({seed})")
            raise


def assert_met(met: Mapping[object, int], least: Mapping[object, int]) -> None:
    """Assert that the runs met everything at least so often, or they prove little."""
    rare = {name: met.get(name, 0) for name, most in least.items() if met.get(name, 0) < most}
    assert not rare, f"the runs hardly meet {rare}: they prove little; {met}"


def breaks(holds: Callable[[int], object], seeds: Iterable[int], promise: str = "") -> bool:
    """Whether one of some runs does not hold; another assertion than of ``promise`` is none."""
    for seed in seeds:
        try:
            holds(seed)
        except AssertionError as broken:
            if str(broken).startswith(promise):
                return True
    return False
