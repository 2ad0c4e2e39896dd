"""``reconcile resume``: a person ends pauses and closes breakers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from checkpoints.journal import Journal
from checkpoints.pauses import Pauses, Resumed
from reconcilers.words.errors import Misconfigured
from streaming.commands.arguments.people import resumed_by, who_and_why
from streaming.commands.person.pause import add_what, pauses_of
from streaming.commands.wiring.generations import accept
from streaming.settings import Settings
from streaming.tables.own_keyspace import open_own


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile resume [WHAT | --own-keyspace] [--reason TEXT] [--who NAME]``."""
    add_what(parser, "end the pauses of it only, and no breaker", default=None)
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
        if arguments.what is not None:
            raise Misconfigured("--own-keyspace ends no pause: it takes no WHAT")
        print("\n".join(accept(settings, open_own(settings), by)))
        return 0
    pauses = pauses_of(settings)
    desk = ResumeDesk(pauses, open_own(settings).journal, by)
    done = list(desk.end_pauses(arguments.what))
    if arguments.what is None:
        done += desk.close_breakers()
    print("\n".join(done or ["nothing was paused, and no breaker was open"]))
    if done:
        print("the running stream looks again at what was held, at half the pace of the limits")
    for each in pauses.standing():
        if each.pilot is not None and each.stands(by.at):
            print(f"{each.told}; `{each.command}` ends it")
    return 0


@dataclass(frozen=True, slots=True)
class ResumeDesk:
    """Ends pauses and breakers; yields a line for each."""

    pauses: Pauses
    journal: Journal
    by: Resumed

    def end_pauses(self, what: str | None) -> Iterator[str]:
        """End the pauses of one name; with None all but pilots, which have their own command."""
        for each in self.pauses.standing():
            if each.pilot is None and what in (None, each.what):
                self.pauses.end(each, self.by)
                if each.stands(self.by.at):
                    yield f"ended the pause of {each.what}, {each}"

    def close_breakers(self) -> Iterator[str]:
        """Close all open breakers."""
        opened = self.journal.breakers()
        self.journal.close_breakers(self.by.at)
        for breaker, why in opened.items():
            yield f"closed breaker {breaker.value}: it had opened for {why}"
