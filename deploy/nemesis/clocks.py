"""Clocks of hosts: each node and its agent read the time from libfaketime, which a file shifts.

The checker must allow for such clocks: `CLOCK_FAULTS` are the faults of which it must.

Only the wall clock is shifted, and timed waits stay exact. Python 3.11 cannot sleep under
libfaketime 0.9.10, so the clock of the stream's host is not changed: those of all nodes are, the
other way.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from deploy.embedded import Stack
from deploy.embedded.process import replace_text
from deploy.nemesis import tools
from deploy.nemesis.injector import Injector
from deploy.nemesis.links import CLUSTER, Words
from deploy.nemesis.schedule import FaultChoice, InjectedFault

CLOCK_FAULTS = (InjectedFault.NODE_CLOCK, InjectedFault.STREAM_CLOCK)
JAVA_WAITS = ("FAKETIME_FORCE_MONOTONIC_FIX=0", "FAKETIME_DONT_FAKE_MONOTONIC=1")
"""Without both, timed waits of Java return at once."""


def clock_of(stack: Stack, number: int) -> Path:
    """The file with the shift of a node's clock."""
    return stack.layout.root / f"clock-{number}"


def set_clocks(clocks: Sequence[Path], shift_s: int) -> None:
    """Shift these clocks, within a second."""
    for each in clocks:
        replace_text(each, f"{shift_s:+d}\n")


def by_clock(clock: Path) -> Words:
    """The words before a command that let its process read this clock."""
    shifted = (f"FAKETIME_TIMESTAMP_FILE={clock}", "FAKETIME_CACHE_DURATION=1", *JAVA_WAITS)
    return ("env", f"LD_PRELOAD={tools.faketime()}", *shifted)


def shifts(stack: Stack, off_s: int) -> Iterator[tuple[FaultChoice, Injector]]:
    """Every shift by so many seconds that can be injected."""
    clocks = {node.place.host: clock_of(stack, node.place.number) for node in stack.nodes}
    for words, shift_s in (("ahead", off_s), ("behind", -off_s)):
        for host, clock in clocks.items():
            target = f"{host}, {off_s} s {words}"
            yield FaultChoice(InjectedFault.NODE_CLOCK, target, CLUSTER), _shift([clock], shift_s)
        stream = FaultChoice(InjectedFault.STREAM_CLOCK, f"the stream, {off_s} s {words}", CLUSTER)
        yield stream, _shift(list(clocks.values()), -shift_s)


def _shift(clocks: Sequence[Path], shift_s: int) -> Injector:
    return Injector(partial(set_clocks, clocks, shift_s), partial(set_clocks, clocks, 0))
