"""Access rights: whether the setting names the table in which this James keeps the lists."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.declared.access_rights import tells_a_list
from reconcilers.declared.families.rights import TRUTHS
from reconcilers.words.errors import Refused
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, warning

OFF = "off"


def lists_of_rights(context: CassandraContext) -> Iterator[Check]:
    """`rights.truth` is the first table of `TRUTHS` that has lists, by some rows of each."""
    wanted = context.settings.rights.truth
    try:
        found = next((each for each in TRUTHS if _has_lists(context, each)), None)
    except Refused:
        return  # it is not known; `truth_readable` reports what must be read
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
