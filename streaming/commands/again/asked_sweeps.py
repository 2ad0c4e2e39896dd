"""The sweeps that a command line asks for: one for each family, one after another."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from checkpoints.clock import now_micros, to_seconds
from checkpoints.sweeps import SweepRecord, of_systems
from reconcilers.declared.family import Family
from reconcilers.words.errors import Misconfigured, Refused, Retryable
from streaming.again.mark import Marking
from streaming.again.sweep import Sweeper
from streaming.again.sweep_result import SweepResult
from streaming.commands.arguments.people import who_of
from streaming.commands.wiring.sweeper import told_of

TO_GO_ON = "`reconcile sweep --resume` continues what it has begun"

ToSweep = Mapping[str, SweepRecord | None]
"""The families to sweep, by name: the sweep that is continued, None for a new one."""


def to_begin(families: Sequence[Family]) -> ToSweep:
    """A new sweep of each of these families."""
    return dict.fromkeys(each.name for each in families)


def to_resume(known: Sequence[SweepRecord], families: Sequence[Family]) -> ToSweep:
    """The sweeps that are left of these families, and new ones of those that were to follow.

    ``known`` are all sweeps, newest first. A sweep of everything compares the families in order, so
    one that was killed has not begun those after the first that is left. Raises `Misconfigured` if
    none is left, or one of other systems.
    """
    left = {each.name: _left_of(known, each) for each in families}
    begun = [each for each in left.values() if each is not None]
    if not begun:
        raise Misconfigured("no sweep is left to go on with: begin one without --resume")
    found, follows = dict[str, SweepRecord | None](), False
    for each in families:
        record = left[each.name]
        its = of_systems(known, each.names)
        since = [sweep for sweep in its if sweep.began_at > begun[0].began_at]
        if record is not None or (follows and not since):
            found[each.name] = record
        follows |= record is not None
    return found


def _left_of(known: Sequence[SweepRecord], family: Family) -> SweepRecord | None:
    """The newest sweep of a family that has not ended."""
    its = of_systems(known, family.names)
    left = next((each for each in its if each.ended_at is None), None)
    if left is not None and left.systems != family.names:
        raise Misconfigured(f"the sweep that is left compares --systems {','.join(left.systems)}")
    return left


def wait_until_it_counts(mark: Marking, wait: Callable[[float], None]) -> None:
    """Wait after a loss: a sweep that begins too soon would not make lineage whole."""
    early = mark.early(now_micros())
    if early:
        wait(to_seconds(early))


@dataclass(slots=True)
class AskedSweeps:
    """Runs sweeps one after another, and prints the result of each.

    ``ranges`` returns how many token ranges each table has in a new sweep of a family.
    ``failed`` are the errors of those that have ended early; none holds up the others.
    """

    arguments: argparse.Namespace
    wait: Callable[[float], None]
    ranges: Callable[[Family], int]
    begun: int = 0
    ended: list[SweepResult] = field(default_factory=list)
    failed: list[Refused | Retryable] = field(default_factory=list)

    def run(self, made: Sweeper, left: SweepRecord | None) -> None:
        """Begin a sweep, or continue the one that is left. Raises `Interrupted`."""
        record = self._begin(made) if left is None else _resumed(made, left)
        self.begun += 1
        try:
            found = made.run(record)
        except (Refused, Retryable) as failed:
            self.failed.append(failed)
            print(f"{made.family.name}: {failed}", file=sys.stderr)
            return
        self.ended.append(found)
        print("\n".join(told_of(made.family, found)), flush=True)

    def _begin(self, made: Sweeper) -> SweepRecord:
        wait_until_it_counts(made.mark, self.wait)
        who, ranges = who_of(self.arguments), self.ranges(made.family)
        systems = made.family.names
        record = SweepRecord(now_micros(), who, self.arguments.reason, systems, ranges)
        made.sweeps.begin(record)
        return record

    def to_go_on(self, all_of_them: int) -> str:
        """What continues the sweeps after the command was stopped."""
        if not self.begun:
            return "nothing was compared"
        if len(self.ended) == all_of_them:
            return "what was found waits for the stream"
        return TO_GO_ON

    def raise_failure(self) -> None:
        """Raise the error of the first sweep that ended early, if any did."""
        for each in self.failed:
            raise each

    @property
    def is_partial(self) -> bool:
        """Whether something was not read, or the truth is not all known."""
        return any(each.unread or each.memory is not None for each in self.ended)


def _resumed(made: Sweeper, left: SweepRecord) -> SweepRecord:
    why = made.mark.refused(left)
    if why is not None:
        print(f"it will not make lineage complete: {why}", file=sys.stderr)
    return left
