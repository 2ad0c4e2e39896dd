"""A cluster as `reconcile doctor` looks at it, and what a check says of it."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from checkpoints.schema.upgrade import upgrade
from deploy.mailserver import james
from reconcilers.counters.live_table import Choice, choose, use_of
from reconcilers.declared.family import Family, Schema
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from reconcilers.declared.tally import Tally
from reconcilers.rows.table_use import ListingUse
from reconcilers.words.errors import Refused
from streaming.commands.doctor.checks.check import CassandraContext, Check, Level
from streaming.settings import Settings
from streaming.tables import Cluster
from tests.fakes.schema_store import MemorySchemaStore


def columns_of(cql: str) -> Schema:
    """Column types by table, as the statements say."""
    tables = re.findall(r"CREATE TABLE IF NOT EXISTS \w+\.(\w+) \((.*?)\n\)", cql, re.DOTALL)
    return {
        name: dict(re.findall(r"^    ([a-z_]+) ([a-z<>]+)", body, re.MULTILINE))
        for name, body in tables
    }


JAMES = columns_of("\n".join(james.schema_statements("apache_james")))
GONE = {"acl", "attachmentmessageid", "attachmentowners", "currentquota", "messagev2"}
"""Tables that a keyspace of James 3.9 and later does not have."""
NEWER = {name: columns for name, columns in JAMES.items() if name not in GONE} | {
    "quotacurrentvalue": dict.fromkeys(("identifier", "quotacomponent", "quotatype"), "text")
    | {"currentvalue": "counter"}
}
EVERYTHING: dict[str, Any] = {
    "repair": {"projections": [each.name for each in MESSAGE_PROJECTIONS]},
    "rights": {"truth": "eventstore"},
    "attachments": {"tables": ["attachmentv2", "attachmentmessageid"]},
    "mailboxes": {"watch": True, "right": "path"},
    "tally": {"projections": ["mailbox_counters", "current_quota"]},
}
"""Sections that switch all on."""
MESSAGES_ALONE: dict[str, Any] = {
    "repair": {"projections": ["messages"]},
    "tally": {"projections": []},
}
"""Sections that switch all else off."""


def finished() -> MemorySchemaStore:
    """Our own keyspace as this version leaves it."""
    store = MemorySchemaStore("reconciler")
    upgrade(store)
    return store


NETWORK = "org.apache.cassandra.locator.NetworkTopologyStrategy"
ONE_PLACE = {"class": NETWORK, "paris": "3"}


@dataclass
class FakeCluster:
    """A cluster where everything is right, unless a test changes it."""

    own: MemorySchemaStore = field(default_factory=finished)
    captured: frozenset[str] = frozenset({"imapuidtable", "messageidtable"})
    ahead: dict[str, float] = field(default_factory=lambda: {"10.0.0.1": 0.01})
    told: dict[str, str] = field(
        default_factory=lambda: {"cdc_enabled": "true", "cdc_block_writes": "false"}
    )
    granted: frozenset[tuple[str, str]] = frozenset()
    superuser: bool = False
    refuses: str | None = None
    empty: frozenset[str] = frozenset()
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    uses: dict[str, ListingUse] = field(default_factory=dict)
    replicated: dict[str, dict[str, str]] = field(default_factory=dict)

    def store(self, settings: object) -> MemorySchemaStore:
        return self.own

    def data_centres(self) -> frozenset[str]:
        return frozenset({"paris", "rome"})

    def replication(self, keyspace: str) -> dict[str, str]:
        return self.replicated.get(keyspace, ONE_PLACE)

    def tables_with_cdc(self, keyspace: str) -> frozenset[str]:
        return self.captured

    def gc_grace(self, keyspace: str) -> dict[str, int]:
        return {"imapuidtable": 864000}

    def clocks(self) -> dict[str, float]:
        return self.ahead

    def node_settings(self, names: object) -> dict[str, dict[str, str]]:
        self._refuse()
        return {"10.0.0.1": self.told}

    def has_rows(self, keyspace: str, table: str) -> bool:
        self._refuse()
        return table not in self.empty

    def sample(self, _keyspace: str, tally: Tally) -> list[dict[str, Any]]:
        self._refuse()
        return self.rows.get(tally.table, [])

    def some(self, _keyspace: str, table: str, column: str) -> list[Any]:
        self._refuse()
        return [row[column] for row in self.rows.get(table, [])]

    def choice(self, keyspace: str, shapes: Sequence[Tally]) -> Choice:
        return choose([use_of(each, self.sample(keyspace, each)) for each in shapes])

    def use_of(self, settings: object, family: Family) -> ListingUse:
        self._refuse()
        table = family.listing.table
        return self.uses.get(table, ListingUse(table, 0, 0))

    def is_superuser(self, role: str) -> bool:
        self._refuse()
        return self.superuser

    def permissions(self, role: str) -> frozenset[tuple[str, str]]:
        return self.granted

    def _refuse(self) -> None:
        if self.refuses:
            raise Refused(self.refuses)


def looked(
    check: Callable[[CassandraContext], Iterator[Check]],
    cluster: FakeCluster | None = None,
    schema: Schema | None = None,
    **sections: Any,
) -> list[Check]:
    settings = Settings.model_validate(
        {"cassandra": {"username": "reconciler"}, **MESSAGES_ALONE, **sections}
    )
    given = cast(Cluster, cluster or FakeCluster())
    tables = JAMES if schema is None else schema
    return list(check(CassandraContext(settings, settings.families(), given, tables)))


def levels(checks: list[Check]) -> set[Level]:
    return {check.level for check in checks}
