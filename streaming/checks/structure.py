"""James's tables, our own keyspace, and the nodes' clocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from checkpoints.cassandra.store import schema_statements
from reconcilers.errors import Misconfigured
from reconcilers.family import Schema, bind
from streaming.checks.words import Check, Level, Subject, fine, problem
from streaming.settings import CassandraSettings

CREATED = re.compile(r"CREATE TABLE IF NOT EXISTS \w+\.(\w+) \((.*?)\n\)", re.DOTALL)
COLUMN = re.compile(r"^    ([a-z_]+) [a-z]+", re.MULTILINE)


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
    statements = schema_statements(settings.own_keyspace, replication(settings))
    lacking = list(_lacking(expected(statements), subject.cluster.schema(settings.own_keyspace)))
    if not lacking:
        yield fine(f"keyspace {settings.own_keyspace} has the tables of this version")
        return
    yield Check(
        Level.PROBLEM,
        f"keyspace {settings.own_keyspace} lacks {', '.join(lacking)}",
        "an admin creates it: --fix",
        cql=tuple(statements),
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


def replication(settings: CassandraSettings) -> Mapping[str, str]:
    """How our own keyspace is replicated when it is made."""
    copies = str(settings.own_replication)
    if settings.local_dc:
        return {"class": "NetworkTopologyStrategy", settings.local_dc: copies}
    return {"class": "SimpleStrategy", "replication_factor": copies}


def expected(statements: list[str]) -> dict[str, frozenset[str]]:
    """Columns by table, from our own CREATE statements."""
    found = (CREATED.search(statement) for statement in statements)
    return {each[1]: frozenset(COLUMN.findall(each[2])) for each in found if each is not None}


def _lacking(wanted: Mapping[str, frozenset[str]], schema: Schema) -> Iterator[str]:
    for table, columns in wanted.items():
        if table not in schema:
            yield f"table {table}"
        elif absent := columns - schema[table].keys():
            yield f"{table}.{', '.join(sorted(absent))}"
