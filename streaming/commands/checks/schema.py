"""James's tables, our own keyspace, and the nodes' clocks."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.errors import Misconfigured
from reconcilers.family import Family, bind
from reconcilers.projections.recent_uids import RECENT_UIDS
from streaming.commands.checks.check import Check, Level, Subject, fine, problem, warning
from streaming.tables.own_keyspace import lacking


def james_tables(subject: Subject) -> Iterator[Check]:
    """The keyspace, and in it the tables and keys that each family needs."""
    if not subject.schema:
        yield problem(f"there is no keyspace {subject.keyspace}", "set cassandra.keyspace")
        return
    for family in subject.families:
        try:
            bound = bind(family, subject.schema)
        except Misconfigured as lacking:
            yield problem(
                f"family {family.name}: {lacking}", "set cassandra.keyspace to that of James"
            )
        else:
            for projection in bound.projections:
                copied = f" {len(projection.columns)} columns of" if projection.identity else ""
                yield fine(f"{projection.table} follows{copied} {family.truth}")
            yield from _tallies(bound, family)
    read = (table for family in subject.families for table in family.reads)
    wanted = dict.fromkeys((*subject.watched, *read))
    absent = [table for table in wanted if table not in subject.schema]
    if absent:
        yield problem(
            f"no table {', '.join(absent)} in {subject.keyspace}", "is it James's keyspace?"
        )


def _tallies(bound: Family, family: Family) -> Iterator[Check]:
    """Each tally that is switched on, and in which of its tables it is kept."""
    kept = {tally.name: tally.table for tally in bound.tallies}
    for name in dict.fromkeys(tally.name for tally in family.tallies):
        if name in kept:
            yield fine(f"{name} is kept in {kept[name]}")
            continue
        shapes = [tally.table for tally in family.tallies if tally.name == name]
        yield warning(
            f"{name} is switched on, but the keyspace has no {' and no '.join(shapes)}:"
            " it is left out",
            "take it out of tally.projections, or set cassandra.keyspace to that of James",
        )


def recents(subject: Subject) -> Iterator[Check]:
    """Some installations keep no recents: there every recent message looks like a difference."""
    table = RECENT_UIDS.table
    for family in subject.families:
        if RECENT_UIDS.name not in family.names or table not in subject.schema:
            continue
        if subject.cluster.has_rows(subject.keyspace, table):
            yield fine(f"{table} has rows: recents are kept")
        elif subject.cluster.has_rows(subject.keyspace, family.first.table):
            yield warning(
                f"{table} is empty: this installation may not keep recents",
                "if so, take recent_uids out of repair.projections",
            )


def own_keyspace(subject: Subject) -> Iterator[Check]:
    """Our own keyspace has every table and column of this version."""
    settings = subject.settings.cassandra
    wanted = lacking(settings, subject.cluster.schema(settings.own_keyspace))
    if not wanted.what:
        yield fine(f"keyspace {settings.own_keyspace} has the tables of this version")
        return
    yield Check(
        Level.PROBLEM,
        f"keyspace {settings.own_keyspace} lacks {', '.join(wanted.what)}",
        "an admin adds it: --fix",
        cql=wanted.cql,
    )


def clocks(subject: Subject) -> Iterator[Check]:
    """Promise 2 holds while clocks differ by less than half the delay."""
    most = subject.settings.stream.delay / 2
    for node, ahead in subject.cluster.clocks().items():
        told = f"the clock of {node} differs from ours by {ahead:+.3f} s"
        if abs(ahead) < most:
            yield fine(told)
        else:
            yield problem(
                f"{told}, more than half the delay ({most:g} s)",
                "correct its clock or ours (NTP); repairs pause until then",
            )
