"""James's tables through the Cassandra driver. Nothing else in `streaming` imports it."""

from streaming.tables.cluster import Cluster, logged_in
from streaming.tables.rows import Tables
from streaming.tables.session import connect, disconnect, node_clocks, schema_of

__all__ = ["Cluster", "Tables", "connect", "disconnect", "logged_in", "node_clocks", "schema_of"]
