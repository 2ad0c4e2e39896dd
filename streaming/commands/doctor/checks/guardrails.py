"""Cassandra's guardrails: none refuses what the reconciler reads and writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from checkpoints.schema.upgrade import ONE_COPY
from reconcilers.words.errors import Refused
from streaming.commands.doctor.checks.capture import bytes_of
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, problem, warning
from streaming.settings import CassandraSettings
from streaming.tables.own_keyspace import replication as own_replication
from streaming.tables.replication import Replication, copies

MUST_BE_ON = {
    "user_timestamps_enabled": "repairs, journal and canaries carry write times of their own",
    "allow_filtering_enabled": "the history of one finding is read with ALLOW FILTERING",
    "intersect_filtering_query_enabled": "that history is filtered by three columns",
}
MUST_BE_OFF = {
    "minimum_timestamp_fail_threshold": "repairs carry the write time of the truth",
    "maximum_timestamp_fail_threshold": "that of a host of James's whose clock is ahead lies ahead",
}
AT_LEAST = {
    "page_size_fail_threshold": 5_000,
    "in_select_cartesian_product_fail_threshold": 100,
}
"""Rows of a page, rows of a read; -1 where nothing is refused."""
PARTITIONS = "partition_keys_in_select_fail_threshold"
"""At least `cassandra.partitions_per_read`."""
CELL = "column_value_size_fail_threshold"
LARGEST_CELL = 2**20
"""Bytes: the journal stores a row, its before-image and the write in one cell."""
DISALLOWED = ("read_consistency_levels_disallowed", "write_consistency_levels_disallowed")
LEVELS = {"ONE", "SERIAL"}
"""Those of canaries and of counters' claims, whatever the settings say."""
COPIES, SIMPLE = "minimum_replication_factor_fail_threshold", "simplestrategy_enabled"
"""What a keyspace that is made must have. Keyspaces that are there are not refused."""
NAMES = (*MUST_BE_ON, *MUST_BE_OFF, *AT_LEAST, PARTITIONS, CELL, *DISALLOWED, COPIES, SIMPLE)
ADVICE = "change it in each node's cassandra.yaml (deploy/runbook.md, *Guardrails*)"
MAKE = "let a superuser run `reconcile doctor --fix`: no guardrail binds one"


def guardrails(context: CassandraContext) -> Iterator[Check]:
    """The guardrails that refuse a statement of ours, if the role may read the nodes' settings."""
    cassandra, cluster = context.settings.cassandra, context.cluster
    try:
        if cassandra.username is None or cluster.is_superuser(cassandra.username):
            return  # no guardrail binds it
        told = cluster.node_settings(NAMES)
    except Refused as refused:
        yield warning(
            f"the guardrails are not known: {refused}", "grant SELECT on keyspace system_views"
        )
        return
    missing = _to_be_made(context)
    for node, settings in told.items():
        found = [problem(f"{node} has {each}", ADVICE) for each in _of_node(settings, cassandra)]
        found += [problem(f"{node} has {each}", MAKE) for each in _of_keyspaces(settings, missing)]
        yield from found or [fine(f"no guardrail of {node} refuses our statements")]


def _of_node(settings: Mapping[str, str], cassandra: CassandraSettings) -> Iterator[str]:
    for name, why in MUST_BE_ON.items():
        if settings.get(name) == "false":
            yield f"{name}: false, but {why}"
    for name, why in MUST_BE_OFF.items():
        if settings.get(name, "null") not in {"", "null"}:
            yield f"{name}: {settings[name]}, but {why}"
    for name, least in {**AT_LEAST, PARTITIONS: cassandra.partitions_per_read}.items():
        allowed = int(settings.get(name, -1))
        if 0 <= allowed < least:
            yield f"{name}: {allowed}, but up to {least} are asked for"
    cell = bytes_of(settings.get(CELL, ""))
    if cell is not None and cell < LARGEST_CELL:
        yield f"{CELL}: {settings[CELL]}, but the journal's cells are as large as James's rows"
    levels = LEVELS | {cassandra.consistency, cassandra.serial_consistency}
    for name in DISALLOWED:
        used = levels & {*re.findall(r"\w+", settings.get(name, ""))}
        if used:
            yield f"{name}: {', '.join(sorted(used))}, which the reconciler uses"


def _to_be_made(context: CassandraContext) -> Mapping[str, Replication]:
    """Those of our keyspaces that are missing, as they are made."""
    cluster, cassandra = context.cluster, context.settings.cassandra
    made_as = {
        context.settings.canary.keyspace: ONE_COPY,
        cassandra.own_keyspace: own_replication(cassandra, cluster.store(cassandra)),
    }
    return {name: each for name, each in made_as.items() if not cluster.replication(name)}


def _of_keyspaces(settings: Mapping[str, str], missing: Mapping[str, Replication]) -> Iterator[str]:
    """What refuses the keyspaces that are still to be made."""
    for keyspace, wanted in missing.items():
        least, has = int(settings.get(COPIES, -1)), max(copies(wanted).values(), default=0)
        if has < least:
            yield f"{COPIES}: {least}, but keyspace {keyspace} is made with {has}"
        if settings.get(SIMPLE) == "false" and wanted["class"].endswith("SimpleStrategy"):
            yield f"{SIMPLE}: false, but keyspace {keyspace} is made with SimpleStrategy"
