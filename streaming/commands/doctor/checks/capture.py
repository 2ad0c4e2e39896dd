"""Change capture: on for each table, safe for the mail server, read by running agents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.error import HTTPError, URLError

from reconcilers.words.errors import Refused
from streaming.commands.doctor.checks.check import CassandraContext, Check, fine, problem, warning
from streaming.monitoring.agents import unwell
from streaming.settings import AgentSettings

NODE_SETTINGS = (
    "cdc_enabled",
    "cdc_block_writes",
    "cdc_on_repair_enabled",
    "cdc_total_space",
    "cdc_raw_directory",
)
SIZE = re.compile(r"(\d+)(B|KiB|MiB|GiB)")
BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
FULL = 0.5


def cdc_on(context: CassandraContext) -> Iterator[Check]:
    """CDC is on for each watched table."""
    captured = context.cluster.tables_with_cdc(context.keyspace)
    present = [table for table in context.watched if table in context.schema]
    on = [table for table in present if table in captured]
    if on:
        yield fine(f"CDC is on for {', '.join(on)}")
    grace = context.cluster.gc_grace(context.keyspace)
    for table in present:
        if table not in captured:
            yield problem(
                f"CDC is off for {table}: its changes are not seen",
                "an admin turns it on: --fix; then a full comparison is needed: `reconcile sweep`",
                cql=turn_on(f"{context.keyspace}.{table}", grace[table]),
            )


def turn_on(table: str, grace: int) -> tuple[str, ...]:
    """Turn CDC on, also for statements that the mail server prepared before.

    Cassandra would not capture the writes of those. Changing ``grace``, the present
    gc_grace_seconds, by a second and back makes Cassandra prepare them again.
    """
    return (
        f"ALTER TABLE {table} WITH cdc = true AND gc_grace_seconds = {grace + 1}",
        f"ALTER TABLE {table} WITH gc_grace_seconds = {grace}",
    )


def node_settings(context: CassandraContext) -> Iterator[Check]:
    """The capture settings of each node, if the role may read them."""
    try:
        told = context.cluster.node_settings(NODE_SETTINGS)
    except Refused as refused:
        yield warning(
            f"the nodes' CDC settings are not known: {refused}",
            "grant SELECT on keyspace system_views",
        )
        return
    for node, settings in told.items():
        found = list(_of_node(node, settings))
        yield from found or [fine(f"{node} captures up to {settings.get('cdc_total_space', '?')}")]
        yield from _space(node, settings)


def _of_node(node: str, settings: Mapping[str, str]) -> Iterator[Check]:
    if settings.get("cdc_enabled") == "false":
        yield problem(
            f"{node} does not capture changes", "set cdc_enabled: true in its cassandra.yaml"
        )
    if settings.get("cdc_block_writes", "true") == "true":
        yield warning(
            f"{node} rejects mail when an agent is down for long and cdc_raw fills",
            "set cdc_block_writes: false: then changes are lost, visibly, instead of mail",
        )
    if settings.get("cdc_on_repair_enabled") == "true":
        yield warning(
            f"{node} captures again what repair streams",
            "set cdc_on_repair_enabled: false, or each repair replays old rows",
        )


def _space(node: str, settings: Mapping[str, str]) -> Iterator[Check]:
    """How full cdc_raw is, if the node's disk is on this machine."""
    limit = bytes_of(settings.get("cdc_total_space", ""))
    directory = Path(settings.get("cdc_raw_directory", ""))
    if limit is None or not directory.is_absolute() or not directory.is_dir():
        return
    share = used_bytes(directory) / (limit or 1)
    told = f"cdc_raw of {node} is {share:.0%} full"
    if share < FULL:
        yield fine(told)
    else:
        yield problem(told, "the agent does not keep up or is dead: see deploy/runbook.md")


def bytes_of(size: str) -> int | None:
    """A size as Cassandra's settings have it (``8MiB``), in bytes; None if it is not set."""
    told = SIZE.fullmatch(size)
    return None if told is None else int(told[1]) * BYTES[told[2]]


def used_bytes(directory: Path) -> int:
    """The size of the files that exist now; the agent moves them away meanwhile."""
    total = 0
    for each in directory.iterdir():
        try:
            total += each.stat().st_size
        except FileNotFoundError:
            continue
    return total


def agents(context: CassandraContext) -> Iterator[Check]:
    """Each agent that the settings name reports to be well."""
    addresses = context.settings.agent.http
    if not addresses:
        yield warning("no agent is named: none is checked", "set agent.http")
        return
    for address in addresses:
        yield _agent(address, context.settings.agent)
    nodes = len(context.cluster.clocks())
    if len(addresses) < nodes:
        yield warning(
            f"{nodes} nodes, but agent.http names {len(addresses)}", "one agent runs on each node"
        )


def _agent(address: str, settings: AgentSettings) -> Check:
    start = "start it: until then cdc_raw fills"
    if not address.startswith(("http://", "https://")):
        return problem(f"agent.http names {address}", "write it as http://host:port, or https://")
    try:
        sick = unwell(address, settings.tls_ca)
    except HTTPError as refused:
        return problem(f"the agent at {address} answers {refused.code}", f"see its log, or {start}")
    except (URLError, OSError) as silent:
        return problem(f"no agent answers at {address} ({silent})", start)
    except (ValueError, TypeError):
        return problem(f"what answers at {address} is not an agent", "correct agent.http")
    if sick:
        return problem(f"the agent at {address} is not well: {', '.join(sick)}", "see its log")
    return fine(f"the agent at {address} is well")
