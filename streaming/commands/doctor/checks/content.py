"""Content: whether its absence can be proven; otherwise such rows wait for a person."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.declared.truth import contents_in, unknown_contents
from reconcilers.words.errors import Refused
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, warning
from streaming.commands.doctor.checks.permissions import ROLES

HELD = "what only that would settle waits for a person"


def content_readable(context: CassandraContext) -> Iterator[Check]:
    """The tables of content are known and can be read."""
    readable = dict[str, None]()
    for truth in dict.fromkeys(each.truth for each in context.families if each.projections):
        of, known = truth.source.plural, contents_in(truth, context.schema)
        if unknown := unknown_contents(truth, context.schema):
            told = f"content of {of} is not read: table {', '.join(unknown)} is not known; {HELD}"
            yield warning(told, "a newer James needs a newer version")
        elif truth.contents and not known:
            told = f"content of {of} is not read: no table {' or '.join(truth.contents)}; {HELD}"
            yield warning(told, "is it James's keyspace?")
        else:
            readable |= dict.fromkeys(known)
    yield from (_readable(context, table) for table in readable)


def _readable(context: CassandraContext, table: str) -> Check:
    try:
        context.cluster.has_rows(context.keyspace, table)
    except Refused as refused:
        return warning(f"{refused}; {HELD}", f"grant SELECT: {ROLES}")
    return fine(f"{table} can be read")
