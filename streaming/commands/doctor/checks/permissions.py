"""The role's permissions: everything it needs, and nothing on a truth table (promise 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconcilers.declared.family import Family, Projection, Schema, tallies_in
from reconcilers.declared.tally import Tally
from reconcilers.declared.truth import contents_in
from reconcilers.mailboxes.rows import UIDS
from reconcilers.words.errors import Refused
from reconcilers.words.model import NEVER_WRITTEN
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, problem, warning
from streaming.commands.wiring.james_version import VERSIONS
from streaming.settings import Settings

ROLES = "deploy/cassandra/roles.cql"
Grants = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A permission on a table, or on a whole keyspace where ``table`` is empty."""

    permission: str
    keyspace: str
    table: str = ""

    @property
    def resource(self) -> str:
        """The resource as CQL names it."""
        return f"TABLE {self.keyspace}.{self.table}" if self.table else f"KEYSPACE {self.keyspace}"

    def granted(self, grants: Grants) -> bool:
        """Whether one of the grants covers this permission."""
        covering = {"<all keyspaces>", f"<keyspace {self.keyspace}>"}
        if self.table:
            covering |= {
                f"<all tables in {self.keyspace}>",
                f"<table {self.keyspace}.{self.table}>",
            }
        return any((self.permission, resource) in grants for resource in covering)


HISTORY = Right("SELECT", "system", "compaction_history")
"""Only `reconcile lwt-report` reads it, and goes on without."""


def needed(settings: Settings, families: Iterable[Family], schema: Schema) -> frozenset[Right]:
    """All permissions that the product uses on the tables that exist.

    `ROLES` grants them for any settings.
    """
    james, own = settings.cassandra.keyspace, settings.cassandra.own_keyspace
    rights = {Right("SELECT", own), Right("MODIFY", own), Right("SELECT", "system_views"), HISTORY}
    rights |= {Right(each, settings.canary.keyspace) for each in ("SELECT", "MODIFY")}
    for family in families:
        repaired: Iterable[Projection | Tally]
        repaired = (*family.projections, *tallies_in(family, schema))
        read = (*family.truth.tables, *family.reads, *(each.table for each in repaired))
        if family.projections:
            read += (*contents_in(family.truth, schema), *family.truth.owners)
        rights |= {Right("SELECT", james, table) for table in read}
        written = {each.table for each in family.written}
        rights |= {Right("MODIFY", james, each.table) for each in repaired if each.table in written}
    tallies = (each for family in settings.families() for each in family.tallies)
    rights |= {Right("SELECT", james, each.table) for each in tallies}  # of two, which is written?
    if settings.rights.truth != "off":
        rights.add(Right("SELECT", james, VERSIONS))
    if settings.mailboxes.right != "none":
        rights.add(Right("SELECT", james, UIDS))
    absent = {each for each in rights if each.keyspace == james and each.table not in schema}
    return frozenset(rights - absent)


def truth_readable(context: CassandraContext) -> Iterator[Check]:
    """One row of each truth can be read."""
    for truth in dict.fromkeys(family.truth.table for family in context.families):
        if truth not in context.schema:
            continue
        try:
            context.cluster.has_rows(context.keyspace, truth)
        except Refused as refused:
            yield problem(str(refused), f"grant SELECT: {ROLES}")
        else:
            yield fine(f"{truth} can be read")


def role(context: CassandraContext) -> Iterator[Check]:
    """The role has the needed permissions of `ROLES`, and none on a truth."""
    name = context.settings.cassandra.username
    if name is None:
        yield warning(
            "no role: only this program's own code keeps it from the truth",
            f"turn authentication on, create the role of {ROLES}, set cassandra.username",
        )
        return
    try:
        if context.cluster.is_superuser(name):
            yield warning(
                f"role {name} is a superuser: it may write the truth", f"use the role of {ROLES}"
            )
            return
        grants = context.cluster.permissions(name)
    except Refused as refused:
        yield warning(f"the rights of role {name} are not known: {refused}", f"compare {ROLES}")
        return
    yield from _judged(context, name, grants)


def _judged(context: CassandraContext, name: str, grants: Grants) -> Iterator[Check]:
    truths = NEVER_WRITTEN.union(*(each.truth.tables for each in context.families))
    written = [
        table
        for table in sorted(truths & context.schema.keys())
        if Right("MODIFY", context.keyspace, table).granted(grants)
    ]
    if written:
        yield warning(
            f"role {name} may write {', '.join(written)}",
            f"revoke MODIFY there, and on the keyspace; grant what {ROLES} grants",
        )
    rights = needed(context.settings, context.families, context.schema)
    missing = sorted(each for each in rights if not each.granted(grants))
    counts = any(tallies_in(each, context.schema) for each in context.families)
    contents = {table for each in context.families for table in each.truth.contents}
    contents -= {table for each in context.families for table in each.truth.tables}
    for each in missing:
        only_doctor = each.keyspace == "system_views" and not counts  # pending hints are there
        unneeded = only_doctor or each == HISTORY or each.table in contents
        check = warning if unneeded else problem
        yield check(
            f"role {name} lacks {each.permission} on {each.resource.lower()}",
            "an admin grants it: --fix",
            cql=(f'GRANT {each.permission} ON {each.resource} TO "{name}"',),
        )
    if not missing and not written:
        yield fine(f"role {name} has the rights it needs and none on a truth table")
