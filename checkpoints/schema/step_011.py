"""Step 11: a row for each time that changes may have been missed, with why.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- What was written before `at` (µs) may never have been heard of. Expires after a year.
CREATE TABLE IF NOT EXISTS $ks.losses (
    name text,
    at bigint,
    why text,
    PRIMARY KEY (name, at, why)
) WITH CLUSTERING ORDER BY (at DESC, why DESC);
"""

STEP = SchemaStep(11, "losses", CQL)
