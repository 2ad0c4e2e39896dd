"""James's tables through the Cassandra driver. Nothing else in `streaming` imports it."""

from streaming.tables.cluster import Cluster, logged_in
from streaming.tables.counters import CounterTables
from streaming.tables.gathering import Gathering
from streaming.tables.rows import Tables
from streaming.tables.session import (
    connect,
    disconnect,
    node_clocks,
    nodes_away,
    nodes_with_hints,
    schema_of,
)

__all__ = [
    "Cluster",
    "CounterTables",
    "Gathering",
    "Tables",
    "connect",
    "disconnect",
    "logged_in",
    "node_clocks",
    "nodes_away",
    "nodes_with_hints",
    "schema_of",
]
