"""Who orders a change and why, dry runs, and the question before a change of many findings."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from checkpoints.clock import now_micros
from checkpoints.pauses import Resumed
from reconcilers.declared.family import Family
from reconcilers.limits.hold import Hold
from reconcilers.rows.decision import REMOVALS
from reconcilers.rows.finding import Finding
from reconcilers.words.model import Micros
from streaming.commands.arguments.people import NO_REASON, is_agreed, who_and_why, who_of


def add_orders(parser: argparse.ArgumentParser) -> None:
    """Add ``--dry-run``, ``--all``, ``--yes``, ``--reason`` and ``--who``."""
    parser.add_argument("--all", action="store_true", help="all that match, after a question")
    parser.add_argument("--yes", action="store_true", help="without a question")
    parser.add_argument(
        "--dry-run", action="store_true", help="only show what would be done, and what refused"
    )
    parser.add_argument(
        "--while-paused", action="store_true", help="--undo also where repairs are paused"
    )
    who_and_why(parser)


def without_a_question(_question: str) -> bool:
    """Agrees at once: a few keys were named, or ``--yes`` was given."""
    return True


@dataclass(frozen=True, slots=True)
class Orders:
    """Who decides and why. ``agreed`` asks them a question; a ``dry_run`` changes nothing.

    ``while_paused``: an undo is sent although repairs are paused.
    """

    who: str
    reason: str = NO_REASON
    dry_run: bool = False
    while_paused: bool = False
    agreed: Callable[[str], bool] = without_a_question
    clock: Callable[[], Micros] = now_micros

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Orders:
        """The orders that the command line gives."""
        asks = not arguments.yes and not arguments.dry_run
        agreed = is_agreed if asks else without_a_question
        insists = arguments.while_paused
        return cls(who_of(arguments), arguments.reason, arguments.dry_run, insists, agreed)

    def agree(self, numbers: Mapping[str, int], what: str) -> bool:
        """Show how many there are of each kind, removals first, and ask the question."""
        if not numbers:
            return True
        for kind in sorted(numbers, key=lambda each: (each not in REMOVALS, each)):
            print(f"{numbers[kind]:>8} {kind}{' (a removal)' if kind in REMOVALS else ''}")
        agreed = self.agreed(f"{sum(numbers.values())} {what}: go on?")
        if not agreed:
            print("nothing done")
        return agreed

    def told(self, sentence: str, done: str) -> str:
        """A finding's sentence, with who has decided on it."""
        return f"{sentence}; {done} by {self.who}: {self.reason}"

    def hold(self, family: Family, finding: Finding) -> Hold:
        """A hold on the finding's key."""
        at = self.clock()
        return Hold(family.name, finding.projection, finding.slot, at, self.who, self.reason)

    def end(self) -> Resumed:
        """The end of a hold."""
        return Resumed(self.clock(), self.who, self.reason)
