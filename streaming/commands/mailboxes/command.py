"""``reconcile mailboxes``: reports conflicts of `mailbox` and `mailboxpathv3`.

``--fix`` repairs them while all services of James are offline. ``--dry-run`` prints each write.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from checkpoints.clock import now_micros
from reconcilers.mailboxes.conflicts import Conflict
from reconcilers.mailboxes.plan import Fix, MailboxWrite, RightSide
from reconcilers.words.errors import Misconfigured, NotOffline, Retryable
from streaming.commands.arguments.logins import login_of
from streaming.commands.arguments.output import TABLE, add_format, formatted
from streaming.commands.arguments.stored_times import with_iso_times
from streaming.commands.mailboxes.compare import Compared, Comparison
from streaming.commands.mailboxes.fix import Fixer
from streaming.commands.mailboxes.offline import Traffic
from streaming.commands.mailboxes.shown import COLUMNS, FixOutcome, ShownConflict
from streaming.settings import CassandraSettings, Settings
from streaming.tables import Nodes, connect
from streaming.tables.mailbox_objects import MailboxObjects
from streaming.tables.mailbox_writer import MailboxWriter, as_text
from streaming.topics import Watcher

OFFLINE = "ALL-SERVICES-ARE-OFFLINE"
"""The words that a person types, which are those of James's own task."""
LOGIN = "--username and --password-file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile mailboxes [--fix (--dry-run | --confirm ALL-SERVICES-ARE-OFFLINE)]``."""
    parser.add_argument("--fix", action="store_true", help="repair, by the setting mailboxes.right")
    parser.add_argument("--confirm", metavar="WORDS", help=f"for --fix: {OFFLINE}")
    parser.add_argument("--dry-run", action="store_true", help="only print the writes of --fix")
    parser.add_argument(
        "--ignore-traffic", action="store_true", help="fix although users seem to write"
    )
    parser.add_argument("--username", metavar="U", help="for --fix: write as this role")
    parser.add_argument("--password-file", type=Path, metavar="F", help="holds U's password")
    add_format(parser)
    parser.set_defaults(run=run)


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Report, or fix; 0 if no conflict is left, else 1.

    Raises `Misconfigured` without the words of `OFFLINE`, `NotOffline` if users seem to write.
    """
    cassandra = checked(settings, arguments)
    session, right = connect(cassandra), RightSide(settings.mailboxes.right)
    tables = MailboxObjects(session, cassandra, settings.sweep.rows_per_second)
    comparison = Comparison(tables, right, waited(settings.stream.delay))
    compared = comparison.run()
    cql = partial(as_text, keyspace=cassandra.keyspace)
    outcome = FixOutcome.PLANNED if arguments.dry_run else FixOutcome.REPORTED
    do: Callable[[Conflict, Fix], ShownConflict] = partial(only_shown, cql, outcome)
    if arguments.fix and not arguments.dry_run:
        writer = MailboxWriter(session, cassandra.keyspace, right)
        do = Fixer(writer.send, comparison.is_right, cql).fix
        if not arguments.ignore_traffic and any(fix.writes for _, fix in compared.found):
            refuse_traffic(settings, frozenset(Nodes(session).ids()))
    done = list[ShownConflict]()
    for line in _lines(arguments.format, _done(compared, do, done)):
        print(line, flush=True)
    told = sys.stdout if arguments.format == TABLE else sys.stderr
    print(summary(compared, done), file=told)
    return int(any(each.outcome is not FixOutcome.FIXED for each in done))


def _done(
    compared: Compared, do: Callable[[Conflict, Fix], ShownConflict], done: list[ShownConflict]
) -> Iterator[ShownConflict]:
    """Each conflict when it is done; ``done`` gets it, too."""
    for conflict, fix in compared.found:
        done.append(do(conflict, fix))
        yield done[-1]


def _lines(form: str, shown: Iterator[ShownConflict]) -> Iterator[str]:
    if form == TABLE:
        return (line for each in shown for line in each.lines())
    return formatted(form, (with_iso_times(each.object()) for each in shown), COLUMNS)


def checked(settings: Settings, arguments: argparse.Namespace) -> CassandraSettings:
    """The login to use, after the arguments are found to fit. Raises `Misconfigured`."""
    login = login_of(settings.cassandra, arguments.username, arguments.password_file, LOGIN)
    orders = (arguments.confirm, arguments.dry_run, arguments.ignore_traffic, login)
    if not arguments.fix and any(orders):
        raise Misconfigured(f"--confirm, --dry-run, --ignore-traffic, {LOGIN} are for --fix")
    if arguments.fix and settings.mailboxes.right == "none":
        raise Misconfigured(
            'mailboxes.right is none, so --fix writes nothing: set "path" or "mailbox"'
            " (docs/mailboxes.md)"
        )
    if arguments.fix and not arguments.dry_run and arguments.confirm != OFFLINE:
        raise Misconfigured(
            f"stop all services of James, look at --fix --dry-run, then add --confirm {OFFLINE}"
        )
    return login or settings.cassandra


def waited(delay: float) -> Callable[[int], None]:
    """Wait for the delay (s) after a line that says so."""

    def wait(keys: int) -> None:
        line = f"{keys} ids and paths are read again in {delay:g} s (stream.delay)"
        print(line, file=sys.stderr, flush=True)
        time.sleep(delay)

    return wait


def only_shown(
    cql: Callable[[MailboxWrite], str], otherwise: FixOutcome, conflict: Conflict, fix: Fix
) -> ShownConflict:
    """A conflict that is not written; ``otherwise`` is its outcome if it has writes."""
    writes = tuple(map(cql, fix.writes))
    left = otherwise is FixOutcome.PLANNED and not writes
    return ShownConflict(conflict, fix, writes, FixOutcome.LEFT if left else otherwise)


def refuse_traffic(settings: Settings, nodes: frozenset[str]) -> None:
    """Raises `NotOffline` unless change capture proves that nobody writes."""
    try:
        with closing(Watcher(settings.kafka)) as watcher:
            why = Traffic(watcher, settings, nodes).why_not_offline(now_micros())
    except Retryable as failed:
        why = str(failed)
    if why is not None:
        raise NotOffline(
            f"users may be writing: {why}. Nothing was fixed: stop all services of James, let"
            " `reconcile canary` run, wait a minute; or --ignore-traffic fixes all the same"
        )


def summary(compared: Compared, done: list[ShownConflict]) -> str:
    """One line: how much was read, and the number of conflicts by outcome."""
    counts = Counter(str(each.outcome) for each in done)
    told = ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))
    line = f"{compared.mailboxes} mailboxes and {compared.paths} paths were read: "
    line += f"{len(done)} conflicts ({told})" if done else "no conflict"
    if compared.changed:
        line += f"; {compared.changed} changed meanwhile and are not judged: run again"
    return line
