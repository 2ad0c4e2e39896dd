"""James's tables through the Cassandra driver. Nothing else in `streaming` imports it."""

from streaming.tables.cluster import Cluster, logged_in
from streaming.tables.collected_flags import CollectedFlags
from streaming.tables.counters import CounterTables
from streaming.tables.session import (
    connect,
    disconnect,
    node_clocks,
    nodes_away,
    nodes_with_hints,
    schema_of,
)
from streaming.tables.tables import Tables

__all__ = [
    "Cluster",
    "CollectedFlags",
    "CounterTables",
    "Tables",
    "connect",
    "disconnect",
    "logged_in",
    "node_clocks",
    "nodes_away",
    "nodes_with_hints",
    "schema_of",
]
