"""``reconcile pause`` and ``reconcile resume``: a person stops and restarts repairs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from checkpoints.cassandra import CassandraPauses
from checkpoints.clock import now_micros
from checkpoints.journal import Journal
from checkpoints.pauses import Pauses, Resumed
from reconcilers.declared.families import FAMILIES
from reconcilers.limits.write_target import ALL, REMOVALS
from reconcilers.words.errors import Misconfigured
from reconcilers.words.iso import iso
from reconcilers.words.model import Micros
from streaming.commands.arguments.names import one_of
from streaming.commands.arguments.people import asked_for, resumed_by, until_or_for, who_and_why
from streaming.commands.wiring.generations import accept
from streaming.settings import Settings
from streaming.tables.own_keyspace import open_own


def pausable() -> tuple[str, ...]:
    """The names that can be paused: all, removals, and every projection and tally."""
    names = dict.fromkeys(name for family in FAMILIES for name in family.names)
    return ALL, REMOVALS, *names


def add_command(commands: Any) -> None:
    """``reconcile pause [WHAT] [--until T | --for 2h] [--reason TEXT] [--who NAME]``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "pause", help="stop writing at once: everything, removals, or one projection"
    )
    _add_what(parser, f"one of {', '.join(pausable())}", default=ALL)
    until_or_for(parser).add_argument(
        "--list", action="store_true", help="all pauses that ever were, with who, why"
    )
    who_and_why(parser)
    parser.set_defaults(run=pause)


def add_resume(commands: Any) -> None:
    """``reconcile resume [WHAT | --own-keyspace] [--reason TEXT] [--who NAME]``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "resume", help="end pauses and close the breakers; what was held is looked at again"
    )
    _add_what(parser, "end the pauses of it only, and no breaker", default=None)
    parser.add_argument(
        "--own-keyspace",
        action="store_true",
        help="our keyspace, lost or restored, is right as it is now; ends no pause, no breaker",
    )
    who_and_why(parser)
    parser.set_defaults(run=resume)


def _add_what(parser: argparse.ArgumentParser, told: str, default: str | None) -> None:
    what: Any = {"nargs": "?", "type": one_of(pausable()), "metavar": "WHAT"}
    parser.add_argument("what", default=default, help=told, **what)


def pause(settings: Settings, arguments: argparse.Namespace) -> int:
    """Pause, or list. After it returns, writes stop within two seconds."""
    pauses = pauses_of(settings)
    if arguments.list:
        print("\n".join(listed(pauses)))
        return 0
    wanted = asked_for(arguments.what, arguments)
    pauses.begin(wanted)
    print(wanted.told)
    print("what is found is held; `reconcile resume` ends the pause")
    return 0


def resume(settings: Settings, arguments: argparse.Namespace) -> int:
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


def pauses_of(settings: Settings) -> Pauses:
    """The pauses of this installation."""
    return CassandraPauses(open_own(settings).store, settings.cassandra.keyspace)


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


def listed(pauses: Pauses, clock: Callable[[], Micros] = now_micros) -> Iterator[str]:
    """All pauses, oldest first, one a line; a line that says so if there was none."""
    history = pauses.history()
    if not history:
        yield "nothing was ever paused"
    for each, ended in history:
        if ended is not None:
            end = f"ended {iso(ended.at)} by {ended.who}: {ended.reason}"
        else:
            end = "STANDS" if each.stands(clock()) else "its time has come"
        yield f"{iso(each.asked_at)}  {each.what}  {each}; {end}"
