"""Step 5: a row for each stream that says which slice it fails at, and how often.

A process that is killed by a slice tells nobody; its next one finds the row.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- ends and until as JSON: positions by topic and partition.
CREATE TABLE IF NOT EXISTS $ks.failing_slices (
    stream text,
    slice text,
    times int,
    unheard int,
    since bigint,
    ends text,
    most bigint,
    until text,
    PRIMARY KEY (stream)
);
"""

STEP = SchemaStep(5, "failing slices", CQL)
