"""James's tables through the Cassandra driver. Nothing else in `streaming` imports it."""

from streaming.tables.rows import Tables
from streaming.tables.session import connect, disconnect, node_clocks, schema_of

__all__ = ["Tables", "connect", "disconnect", "node_clocks", "schema_of"]
