"""``reconcile findings``: lists findings, and carries out what a person decides."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from datetime import date
from functools import partial
from itertools import chain, islice
from typing import Any
from uuid import UUID

from checkpoints.cassandra import CassandraLostRows
from checkpoints.clock import now_micros
from checkpoints.codec import Json, finding_to_json
from checkpoints.journal import Journal
from reconcilers.declared.families import FAMILIES, family_named
from reconcilers.declared.family import Family
from reconcilers.declared.tally import QuotaRoot
from reconcilers.limits.hold import Hold
from reconcilers.rows.finding import Finding
from reconcilers.words.errors import Misconfigured
from reconcilers.words.key import named
from streaming.commands.arguments.finding_filter import FindingFilter, add_filter, filter_of, key_of
from streaming.commands.arguments.output import TABLE, add_format
from streaming.commands.arguments.times import day_of, positive
from streaming.commands.person.dead_letters import retry as retry_dead_letters
from streaming.commands.person.decisions import ACCEPT, RETRY, Desk
from streaming.commands.person.finding_formats import listed
from streaming.commands.person.members import members
from streaming.commands.person.orders import Orders, add_orders
from streaming.commands.person.undo import undo_desk
from streaming.commands.person.unused_flags import collected_flags_of, unused_flags
from streaming.settings import Settings
from streaming.tables import CounterTables, connect
from streaming.tables.own_keyspace import OwnStores, open_own
from streaming.topics import publish_wakes

TABLE_ROWS = 100
ALL_DAYS = ()
"""Of --log without a day; argparse would read a text as one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``reconcile findings``."""
    add_filter(parser)
    add_format(parser)
    parser.add_argument(
        "--log",
        nargs="?",
        const=ALL_DAYS,
        type=day_of,
        metavar="DAY",
        help="what happened on a day (UTC), or from --since on",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="most lines (table: 100)")
    _add_decisions(parser)
    add_orders(parser)
    parser.set_defaults(run=run)


def _add_decisions(parser: argparse.ArgumentParser) -> None:
    does = parser.add_mutually_exclusive_group()
    ids: dict[str, Any] = {"nargs": "*", "action": "extend", "type": key_of, "metavar": "KEY"}
    does.add_argument("--retry", help="try stuck ones again; look at reported ones at once", **ids)
    does.add_argument("--accept", help="carry out what was held", **ids)
    does.add_argument(
        "--undo",
        help="put back what a repair replaced, and leave the key alone from then on",
        **ids,
    )
    does.add_argument("--release", help="end the hold of keys that were undone", **ids)
    does.add_argument(
        "--members",
        type=key_of,
        metavar="KEY",
        help="instead: the rows of the past_rows or truth_lost_rows finding at this key",
    )
    does.add_argument("--on-hold", action="store_true", help="instead: the keys on hold")
    does.add_argument(
        "--retry-dead-letters", action="store_true", help="publish their records again"
    )
    does.add_argument(
        "--unused-flags",
        action="store_true",
        help="instead: flags that mailboxes offer and no message has, as read now (--mailbox)",
    )


def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """List or decide. Returns 1 if a named finding could not be decided."""
    chosen = _chosen(arguments)
    if arguments.retry_dead_letters:
        return retry_dead_letters(settings, arguments)
    wanted = filter_of(arguments, partial(_mailboxes, settings))
    if arguments.unused_flags:
        unused = unused_flags(collected_flags_of(settings), arguments.mailbox, now_micros)
        found = ((family_named(each.family), each) for each in unused)
        _list(_as_json(found, wanted), arguments)
        return 0
    own, orders = open_own(settings), Orders.of(arguments)
    publish = partial(publish_wakes, settings.kafka, settings.kafka.suspects_topic)
    desk = Desk(own.journal, publish, now_micros, orders)
    for given, decision in ((arguments.retry, RETRY), (arguments.accept, ACCEPT)):
        if given is not None:
            return desk.decide(decision, chosen, wanted)
    if arguments.release is not None:
        return desk.release(chosen, wanted)
    if arguments.undo is not None:
        return undo_desk(settings, own, orders).undo(chosen, wanted)
    _list(_lines(own, desk, arguments, wanted), arguments)
    return 0


def _mailboxes(settings: Settings, root: QuotaRoot) -> Iterable[UUID]:
    """The mailboxes of a user. Raises `Misconfigured` if there is no such user."""
    session, pace = connect(settings.cassandra), settings.tally.rows_per_second
    found = CounterTables(session, settings.cassandra, FAMILIES[0], pace).mailboxes(root)
    if not found:
        raise Misconfigured(f"--user {root.user}: no mailbox path is theirs in {root.namespace}")
    return found


def _lines(
    own: OwnStores, desk: Desk, arguments: argparse.Namespace, wanted: FindingFilter
) -> Iterator[Json]:
    if arguments.members is not None:
        return members(own.journal, CassandraLostRows(own.store), arguments.members, wanted)
    if arguments.on_hold:
        return (_hold_as_json(family, hold) for family, hold in desk.on_hold(wanted))
    if arguments.log is None:
        return _as_json(_open(own.journal), wanted)
    days = [arguments.log] if isinstance(arguments.log, date) else wanted.days(now_micros())
    logged = chain.from_iterable(own.journal.log(day) for day in days)
    return filter(wanted.has, logged)


def _hold_as_json(family: Family, hold: Hold) -> Json:
    return {
        "at": hold.asked_at,
        "family": hold.family,
        "projection": hold.projection,
        **named(family.key, hold.slot.key),
        "kind": "",
        "state": "on hold",
        "attempts": 0,
        "accepted": [],
        "who": hold.who,
        "reason": hold.reason,
        "sentence": str(hold),
    }


def _open(journal: Journal) -> Iterator[tuple[Family, Finding]]:
    for family in FAMILIES:
        for finding in journal.open_findings(family):
            yield family, finding


def _as_json(found: Iterable[tuple[Family, Finding]], wanted: FindingFilter) -> Iterator[Json]:
    """The findings that match, as JSON objects."""
    for family, finding in found:
        if wanted.takes(family, finding):
            yield finding_to_json(finding, family)


def _list(lines: Iterator[Json], arguments: argparse.Namespace) -> None:
    limit = arguments.limit
    if limit is None and arguments.format == TABLE:
        limit = TABLE_ROWS
    for text in listed(arguments.format, islice(lines, limit)):
        print(text)
    if limit is not None and next(lines, None) is not None and arguments.format == TABLE:
        print(f"… and more: --limit, or --format jsonl (shown: {limit})")


def _chosen(arguments: argparse.Namespace) -> frozenset[str] | None:
    """The keys to decide on; None for all, or if nothing is decided.

    Raises `Misconfigured` if a decision is given neither or both.
    """
    given = (arguments.retry, arguments.accept, arguments.release, arguments.undo)
    keys = next((each for each in given if each is not None), None)
    if keys is None:
        return None
    if arguments.log is not None:
        raise Misconfigured("--log only lists: decide on open findings")
    if bool(keys) == arguments.all:
        raise Misconfigured("name what to decide as the list shows it, or take --all that match")
    return frozenset(keys) if keys else None
