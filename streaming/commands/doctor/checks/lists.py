"""Access rights: whether the setting names the table in which this James keeps the lists."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.declared.access_rights import tells_a_list
from reconcilers.declared.families.rights import TRUTHS
from reconcilers.words.errors import Refused
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, warning
from streaming.commands.wiring.james_version import OLDEST, before_events

OFF = "off"


def lists_of_rights(context: CassandraContext) -> Iterator[Check]:
    """`rights.truth` is the table in which this James stores lists, by some rows of each.

    That is the first of `TRUTHS` that has lists, or the oldest until James's migration has ended.
    """
    wanted = context.settings.rights.truth
    try:
        having = [each for each in TRUTHS if _has_lists(context, each)]
        early = before_events(context.cluster, context.keyspace, context.schema)
    except Refused:
        return  # it is not known; `truth_readable` and `role` report what must be read
    found = OLDEST if early and OLDEST in having else next(iter(having), None)
    if found is None:
        if wanted != OFF:
            yield fine(f"no table has lists of rights yet; rights.truth is {wanted}")
    elif found == wanted:
        yield fine(f"{found} has lists of rights, as rights.truth says")
    else:
        so = (
            "they are not compared" if wanted == OFF else "rights are compared with copies, or none"
        )
        told = f"{found} has lists of rights, but rights.truth is {wanted}: {so}"
        yield warning(told, f'set rights.truth = "{found}"')


def _has_lists(context: CassandraContext, table: str) -> bool:
    """Whether some row has a list of rights; of the event store, some event of a list."""
    if table not in context.schema:
        return False
    derive = TRUTHS[table].derive
    if derive is None:
        return context.cluster.has_rows(context.keyspace, table)
    (column,) = derive.reads
    return any(tells_a_list(each) for each in context.cluster.some(context.keyspace, table, column))
