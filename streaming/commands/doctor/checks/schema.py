"""James's tables, our own keyspace, and the nodes' clocks."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.declared.family import Family, Projection, bind
from reconcilers.rows.table_use import optional_table
from reconcilers.words.errors import Misconfigured
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, problem, warning
from streaming.tables.own_keyspace import gap_in
from streaming.tables.replication import (
    data_centres,
    more_copies,
    why_levels_are_guessed,
    why_too_few_copies,
)

COPIES_ROWS = "; its rows are copied by `reconcile stream` when it starts, or by --fix as an admin"


def james_tables(context: CassandraContext) -> Iterator[Check]:
    """The keyspace exists, with the tables and keys that each family needs."""
    if not context.schema:
        yield problem(f"there is no keyspace {context.keyspace}", "set cassandra.keyspace")
        return
    for family in context.families:
        try:
            bound = bind(family, context.schema)
        except Misconfigured as lacking:
            unwanted = ", or take the table out of attachments.tables" * bool(
                optional_table(family)
            )
            told = f"family {family.name}: {lacking}"
            yield problem(told, f"set cassandra.keyspace to that of James{unwanted}")
        else:
            for projection in bound.projections:
                copied = f" {len(projection.columns)} columns of" if projection.identity else ""
                yield fine(f"{projection.table} follows{copied} {family.truth.table}")
            yield from _tallies(bound, family)
    read = (table for family in context.families for table in family.reads)
    older = {table for family in context.families for table in family.truth.older}
    wanted = dict.fromkeys((*context.watched, *read))
    absent = [table for table in wanted if table not in {*context.schema, *older}]
    if absent:
        yield problem(
            f"no table {', '.join(absent)} in {context.keyspace}", "is it James's keyspace?"
        )


def _tallies(bound: Family, family: Family) -> Iterator[Check]:
    """Each tally that is switched on has a table; the line names the one that is kept."""
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


def optional_tables(context: CassandraContext) -> Iterator[Check]:
    """Some installations keep no rows of it: every message would look like a difference."""
    for family in context.families:
        for projection in family.projections:
            if projection.optional is not None and projection.table in context.schema:
                yield from _kept(context, family, projection, projection.optional)


def _kept(
    context: CassandraContext, family: Family, projection: Projection, what: str
) -> Iterator[Check]:
    table = projection.table
    if context.cluster.has_rows(context.keyspace, table):
        yield fine(f"{table} has rows: {what} are kept")
    elif context.cluster.has_rows(context.keyspace, family.listing.table):
        yield warning(
            f"{table} is empty: this installation may not keep {what}",
            f"if so, take {projection.name} out of repair.projections",
        )


def own_keyspace(context: CassandraContext) -> Iterator[Check]:
    """Our keyspace has finished every step of its schema and lost nothing since."""
    settings = context.settings.cassandra
    gap = gap_in(context.cluster.store(settings), settings)
    if not gap.todo:
        yield fine(f"keyspace {settings.own_keyspace} has the tables of this version")
        return
    rows = COPIES_ROWS if gap.copies else ""
    yield problem(
        f"keyspace {settings.own_keyspace} lacks {', '.join(gap.what)}",
        f"an admin adds it: --fix{rows}",
        cql=gap.cql,
        own_keyspace=gap.what,
    )


def copies_and_levels(context: CassandraContext) -> Iterator[Check]:
    """Our keyspace has as many copies as James's, and the levels of James are set."""
    settings, cluster = context.settings.cassandra, context.cluster
    james, own = (cluster.replication(each) for each in (settings.keyspace, settings.own_keyspace))
    few = why_too_few_copies(settings, james, own)
    if few:
        advice = f"repair mode refuses to start until then: {more_copies(settings, james)}"
        yield problem(few, advice)
    elif own:
        yield fine(f"keyspace {settings.own_keyspace} has no fewer copies than {settings.keyspace}")
    why = why_levels_are_guessed(settings, data_centres(james, cluster.data_centres()))
    if why is not None:
        yield problem(why, "repair mode refuses to start until then")


def clocks(context: CassandraContext) -> Iterator[Check]:
    """Clocks differ by less than half the delay, as promise 2 requires."""
    most = context.settings.stream.delay / 2
    for node, ahead in context.cluster.clocks().items():
        told = f"the clock of {node} differs from ours by {ahead:+.3f} s"
        if abs(ahead) < most:
            yield fine(told)
        else:
            yield problem(
                f"{told}, more than half the delay ({most:g} s)",
                "correct its clock or ours (NTP); repairs pause until then",
            )
