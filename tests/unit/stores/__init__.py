"""Our own keyspace: journal, lineage, lease, schema."""
