"""``reconcile resume``: a person ends pauses and closes breakers."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass

from checkpoints.journal import Journal
from checkpoints.pauses import Pauses, Resumed
from reconcilers.limits.breakers import Breaker, Opening, first_reasons
from reconcilers.limits.pause import Pause
from reconcilers.words.errors import Misconfigured
from streaming.commands.arguments.names import one_of
from streaming.commands.arguments.people import is_agreed, resumed_by, who_and_why
from streaming.commands.person.pause import pausable, pauses_of
from streaming.commands.wiring.generations import accept
from streaming.settings import Settings
from streaming.tables.own_keyspace import open_own


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile resume [--pause NAME] [--breaker NAME] [--yes | --dry-run] | --own-keyspace``."""
    breakers = [each.value for each in Breaker]
    for option, names in (("--pause", pausable()), ("--breaker", breakers)):
        parser.add_argument(
            option,
            action="append",
            default=[],
            type=one_of(names),
            metavar="NAME",
            help=f"end this only; one of {', '.join(names)}",
        )
    parser.add_argument("--yes", action="store_true", help="end others' pauses without a question")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be ended")
    parser.add_argument(
        "--own-keyspace",
        action="store_true",
        help="our keyspace, lost or restored, is right as it is now; ends no pause, no breaker",
    )
    who_and_why(parser)
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """End pauses and close breakers; the running stream reads it with its next batch."""
    by = resumed_by(arguments)
    if arguments.own_keyspace:
        if arguments.pause or arguments.breaker or arguments.dry_run:
            raise Misconfigured("--own-keyspace ends no pause and no breaker: it takes no name")
        print("\n".join(accept(settings, open_own(settings), by)))
        return 0
    desk = ResumeDesk(pauses_of(settings), open_own(settings).journal, by)
    ends = desk.asked(arguments.pause, arguments.breaker)
    lines = ends.told(by)
    print("\n".join(lines or ["nothing is paused, and no breaker is open"]))
    if arguments.dry_run:
        print("nothing done")
        return 0
    others = sorted({each.who for each in ends.pauses if each.stands(by.at)} - {by.who})
    question = f"These are pauses of {', '.join(others)}. End them?"
    if others and not arguments.yes and not is_agreed(question):
        print("nothing done")
        return 1
    desk.end(ends)
    if lines:
        print(
            "ended; the running stream looks again at what was held, at half the pace of the limits"
        )
    for each in desk.pauses.standing():
        if each.stands(by.at):
            print(f"{each.told}; `{each.command}` ends it")
    return 0


@dataclass(frozen=True, slots=True)
class Resumption:
    """The pauses and the openings of breakers that a person ends. They are listed once."""

    pauses: tuple[Pause, ...]
    openings: tuple[Opening, ...]

    def told(self, by: Resumed) -> list[str]:
        """A line for each pause in force, and for each open breaker."""
        paused = [f"pause of {each.what}, {each}" for each in self.pauses if each.stands(by.at)]
        reasons = first_reasons(self.openings)
        opened = [f"breaker {each.value}, open: {why}" for each, why in reasons.items()]
        return [*paused, *opened]


@dataclass(frozen=True, slots=True)
class ResumeDesk:
    """Resumption pauses and breakers; pilots have a command of their own."""

    pauses: Pauses
    journal: Journal
    by: Resumed

    def asked(self, pauses: Collection[str], breakers: Collection[str]) -> Resumption:
        """The pauses and breakers of these names; all of both if no name is given."""
        named = bool(pauses or breakers)
        standing = (each for each in self.pauses.standing() if each.pilot is None)
        openings = self.journal.openings()
        return Resumption(
            tuple(each for each in standing if not named or each.what in pauses),
            tuple(each for each in openings if not named or each.breaker.value in breakers),
        )

    def end(self, ends: Resumption) -> None:
        """End the pauses and close the openings."""
        for each in ends.pauses:
            self.pauses.end(each, self.by)
        self.journal.close_breakers(self.by.at, ends.openings)
