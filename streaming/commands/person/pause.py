"""``reconcile pause``: a person stops repairs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

from checkpoints.cassandra import CassandraPauses
from checkpoints.clock import now_micros
from checkpoints.codec import Json
from checkpoints.pauses import Pauses
from reconcilers.declared.families import FAMILIES
from reconcilers.limits.write_target import ALL, REMOVALS
from reconcilers.words.iso import iso
from reconcilers.words.model import Micros
from streaming.commands.arguments.names import one_of
from streaming.commands.arguments.output import TABLE, add_format, formatted
from streaming.commands.arguments.people import asked_for, until_or_for, who_and_why
from streaming.settings import Settings
from streaming.tables.own_keyspace import open_own

COLUMNS = (
    "asked_at",
    "what",
    "who",
    "reason",
    "until",
    "stands",
    "ended_at",
    "ended_by",
    "ended_why",
)


def pausable() -> tuple[str, ...]:
    """The names that can be paused: all, removals, and every projection and tally."""
    names = dict.fromkeys(name for family in FAMILIES for name in family.names)
    return ALL, REMOVALS, *names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile pause [WHAT] [--until T | --for 2h] [--reason TEXT] [--who NAME]``."""
    what: Any = {"nargs": "?", "type": one_of(pausable()), "metavar": "WHAT"}
    parser.add_argument("what", default=ALL, help=f"one of {', '.join(pausable())}", **what)
    until_or_for(parser).add_argument(
        "--list", action="store_true", help="all pauses that ever were, with who, why"
    )
    who_and_why(parser)
    add_format(parser)
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Pause, or list. After it returns, writes stop within two seconds."""
    if arguments.list:
        pauses, form = pauses_of(settings), arguments.format
        told = listed(pauses) if form == TABLE else formatted(form, rows(pauses), COLUMNS)
        for line in told:
            print(line)
        return 0
    wanted = asked_for(arguments.what, arguments)
    pauses_of(settings).begin(wanted)
    print(wanted.told)
    print(f"what is found is held; `reconcile resume --pause {wanted.what}` ends the pause")
    return 0


def pauses_of(settings: Settings) -> Pauses:
    """The pauses of this installation."""
    return CassandraPauses(open_own(settings).store, settings.cassandra.keyspace)


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


def rows(pauses: Pauses, clock: Callable[[], Micros] = now_micros) -> Iterator[Json]:
    """All pauses, oldest first, as objects by `COLUMNS`."""
    for each, ended in pauses.history():
        yield {
            "asked_at": iso(each.asked_at),
            "what": each.what if each.pilot is None else str(each.pilot),
            "who": each.who,
            "reason": each.reason,
            "until": None if each.until is None else iso(each.until),
            "stands": ended is None and each.stands(clock()),
            "ended_at": None if ended is None else iso(ended.at),
            "ended_by": None if ended is None else ended.who,
            "ended_why": None if ended is None else ended.reason,
        }
