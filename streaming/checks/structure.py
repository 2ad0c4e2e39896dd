"""James's tables, our own keyspace, and the nodes' clocks."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.errors import Misconfigured
from reconcilers.family import bind
from streaming.checks.words import Check, Level, Subject, fine, problem
from streaming.own import lacking


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
                yield fine(
                    f"{family.truth} and {projection.table} share {len(projection.columns)} columns"
                )
    absent = [table for table in subject.watched if table not in subject.schema]
    if absent:
        yield problem(
            f"no table {', '.join(absent)} in {subject.keyspace}", "is it James's keyspace?"
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
