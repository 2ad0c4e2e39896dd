"""The disk space that lineage takes once a sweep has read every message."""

from __future__ import annotations

from collections.abc import Iterator

from reconcilers.declared.truth import TruthTable
from reconcilers.words.errors import Refused
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, warning
from streaming.tables.replication import copies

BYTES_A_MESSAGE = 115
"""Of memory, on each copy's disk: measured, see docs/benchmarks.md, *A sweep*."""
MEBIBYTE = 2**20


def memory_space(context: CassandraContext) -> Iterator[Check]:
    """Compares it with James's tables, since Cassandra does not report free space."""
    for family in context.families:
        if family.projections and family.truth.table in context.schema:
            yield _space(context, family.truth)


def _space(context: CassandraContext, truth: TruthTable) -> Check:
    cluster, table = context.cluster, truth.table
    try:
        messages = cluster.estimated_partitions(context.keyspace, table)
        taken = cluster.disk_usage(context.keyspace)
    except Refused as refused:
        return warning(
            f"{refused}; what lineage takes is not known", "grant SELECT on system_views"
        )
    if not messages:
        return fine(f"lineage of {table} takes no space yet: Cassandra estimates no rows")
    own = cluster.replication(context.settings.cassandra.own_keyspace)
    share = max(copies(own).values(), default=1) / max(len(taken), 1)
    most = messages * BYTES_A_MESSAGE * min(share, 1.0) / MEBIBYTE
    james = min(taken.values(), default=0)
    what = (
        f"lineage of some {messages:,} {truth.source.plural} takes some {most:,.0f} MiB"
        f" on each node's disk, where {context.keyspace} takes {james:,.0f} MiB or more"
    )
    if most <= james / 10:
        return fine(what)
    return warning(what, "check the free space on the nodes (`df`) before a sweep")
