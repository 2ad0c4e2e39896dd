"""``reconcile pilot``: repairs only some users, mailboxes, systems or kinds; holds the rest."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from checkpoints.pauses import Pauses, Resumed
from reconcilers.declared.tally import QuotaRoot
from reconcilers.limits.pause import PILOT, Pause
from reconcilers.limits.pilot import Pilot
from reconcilers.words.errors import Misconfigured
from reconcilers.words.model import Kind
from streaming.commands.arguments.finding_filter import NAMESPACE, system_names
from streaming.commands.arguments.names import one_of
from streaming.commands.arguments.people import asked_for, resumed_by, until_or_for, who_and_why
from streaming.commands.arguments.times import uuid_of
from streaming.commands.person.pause import pauses_of
from streaming.counters.ports import OwnerTables
from streaming.settings import Settings
from streaming.tables import CounterTables, connect

NONE = "no pilot: everything is repaired"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile pilot [--user U] [--mailbox ID] [--system S] [--kind K] [--for 2h] | --end``."""
    parser.add_argument(
        "--user", action="append", default=[], metavar="NAME", help="their mailboxes and quota"
    )
    parser.add_argument("--mailbox", action="append", default=[], type=uuid_of, metavar="ID")
    systems, kinds = system_names(), [each.value for each in Kind]
    parser.add_argument(
        "--system",
        action="append",
        default=[],
        type=one_of(systems),
        metavar="NAME",
        help=f"one of {', '.join(systems)}",
    )
    parser.add_argument("--kind", action="append", default=[], type=one_of(kinds), metavar="KIND")
    until_or_for(parser).add_argument(
        "--end", action="store_true", help="end the pilot: what was held outside is looked at again"
    )
    who_and_why(parser)
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Begin, change, end or show the pilot; a running stream follows within two seconds."""
    wanted = _pilot_of(arguments)
    if wanted == Pilot():
        if (arguments.until or arguments.lasts) is not None:
            raise Misconfigured("name what is to be repaired until then: --user, --system or such")
        shown = end if arguments.end else show
        lines = list(shown(pauses_of(settings), resumed_by(arguments)))
    elif arguments.end:
        raise Misconfigured("--end ends the whole pilot: it takes no --user, --system or such")
    else:
        asked = asked_for(PILOT, arguments, wanted)
        lines = [*unknown(wanted, _tables(settings)), *begin(pauses_of(settings), asked)]
    print("\n".join(lines or [NONE]))
    return 0


def begin(pauses: Pauses, wanted: Pause) -> Iterator[str]:
    """Begin this pilot and end any other, in one write."""
    by = Resumed(wanted.asked_at, wanted.who, f"another pilot: {wanted.reason}")
    pauses.replace(list(_pilots(pauses)), wanted, by)
    yield wanted.told
    yield "everything else is held; `reconcile pilot --end` ends the pilot"


def end(pauses: Pauses, by: Resumed) -> Iterator[str]:
    """End the pilot."""
    for each in _pilots(pauses):
        pauses.end(each, by)
        if each.stands(by.at):
            yield f"ended: {each.told}"


def show(pauses: Pauses, now: Resumed) -> Iterator[str]:
    """Print the pilot that stands."""
    return (each.told for each in _pilots(pauses) if each.stands(now.at))


def unknown(wanted: Pilot, tables: OwnerTables) -> Iterator[str]:
    """A line for each user without a mailbox, whose name may be mistyped.

    Raises `Refused` if owners cannot be read: nothing of theirs would be repaired.
    """
    for user in sorted(wanted.users):
        theirs = tables.mailboxes(QuotaRoot(NAMESPACE, user))
        if not any(tables.owner(each) is not None for each in theirs):
            yield f"NOTE: {user} has no mailbox: is the name right?"


def _tables(settings: Settings) -> OwnerTables:
    cassandra, tally = settings.cassandra, settings.tally
    family = settings.families()[0]
    return CounterTables(connect(cassandra), cassandra, family, tally.rows_per_second)


def _pilots(pauses: Pauses) -> Iterator[Pause]:
    return (each for each in pauses.standing() if each.pilot is not None)


def _pilot_of(arguments: argparse.Namespace) -> Pilot:
    return Pilot(
        users=frozenset(arguments.user),
        mailboxes=frozenset(arguments.mailbox),
        systems=frozenset(arguments.system),
        kinds=frozenset(arguments.kind),
    )
