"""Quotas: which table is kept, and whether its rows have the names that are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconcilers.counters.live_table import WRITTEN, Choice, is_read
from reconcilers.declared.family import tallies_in
from reconcilers.declared.tally import Tally
from reconcilers.words.errors import ReconcilerError, Refused
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, problem, warning
from streaming.commands.doctor.checks.permissions import ROLES
from streaming.commands.wiring.kept_tallies import Chosen, chosen, one_table_each
from streaming.settings import Settings
from streaming.tables import Cluster

AUTO = "auto"


def context_of(settings: Settings, cluster: Cluster) -> CassandraContext:
    """What the checks of Cassandra read; a tally with two tables in the one that is kept."""
    keyspace = settings.cassandra.keyspace
    schema, families = cluster.schema(keyspace), settings.families()

    def choose(shapes: Sequence[Tally]) -> Choice:
        try:
            return cluster.choice(keyspace, shapes)
        except ReconcilerError as failed:
            return Choice(None, str(failed))

    auto = settings.tally.model_copy(update={"quota_table": AUTO})
    found = chosen(settings.model_copy(update={"tally": auto}).families(), schema, choose)
    if settings.tally.quota_table == AUTO:
        families = one_table_each(families, found)
    return CassandraContext(settings, families, cluster, schema, tuple(found))


def one_quota_table(context: CassandraContext) -> Iterator[Check]:
    """If two tables of quotas exist, it is known which one James writes."""
    wanted = context.settings.tally.quota_table
    for each in context.chosen:
        if wanted == AUTO:
            yield _guessed(each)
        elif each.choice.kept is None or each.choice.kept.table == wanted:
            yield fine(f"{each.tables} both exist: {wanted} is kept, as tally.quota_table says")
        else:
            told = f"tally.quota_table is {wanted}, but James seems to write the other"
            yield warning(f"{told}: {each.choice.why}", "compare James's quota.compatibility.mode")


def _guessed(found: Chosen) -> Check:
    if found.choice.kept is not None:
        table = found.choice.kept.table
        return warning(
            str(found), f"set tally.quota_table = {table}, or drop the table that James left behind"
        )
    return problem(
        str(found),
        "a stream keeps neither until it sees James write one; set tally.quota_table: currentquota"
        " while James's quota.compatibility.mode is true, else quotacurrentvalue",
    )


def quotas_readable(context: CassandraContext) -> Iterator[Check]:
    """If a table of quotas has rows, some of them are read."""
    for family in context.families:
        for tally in tallies_in(family, context.schema):
            there = tally.columns <= context.schema[tally.table].keys()
            if tally.per_quota_root and there:
                yield from _readable(context, tally)


def _readable(context: CassandraContext, tally: Tally) -> Iterator[Check]:
    try:
        rows = context.cluster.sample(context.keyspace, tally)
    except Refused as refused:
        yield problem(str(refused), f"grant SELECT: {ROLES}")
        return
    if any(is_read(tally, row) for row in rows):
        yield fine(f"{tally.table} has rows under the names that {tally.name} reads")
    elif rows:
        seen = ", ".join(f"{name} {value}" for name, value in rows[0].items() if name != WRITTEN)
        yield problem(
            f"{tally.table} has rows, but none of {len(rows)} is under the names that {tally.name}"
            f" reads ({seen}): no quota is corrected",
            "is it James's keyspace? a newer James may need a newer version",
        )
