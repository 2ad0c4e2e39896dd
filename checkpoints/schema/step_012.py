"""Step 12: when the beginning of memory was noted, and when a sweep had read the listing, too.

Beside since when every change has been heard, and when a sweep had read the whole truth.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
ALTER TABLE $ks.watches ADD IF NOT EXISTS noted_at bigint;

ALTER TABLE $ks.watches ADD IF NOT EXISTS listed_at bigint;
"""

STEP = SchemaStep(12, "what is known of the listing", CQL)
