"""Step 6: when memory is whole, and whose the keyspace is.

Beside the time since when every change has been heard: the watched tables as they were captured
then, and the end of the last sweep. And a row that names James's keyspace that all of this is of.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
ALTER TABLE $ks.watches ADD IF NOT EXISTS swept_at bigint;

ALTER TABLE $ks.watches ADD IF NOT EXISTS captured text;

-- One row, named 'owner'. Written by a lightweight transaction.
CREATE TABLE IF NOT EXISTS $ks.owner (
    name text,
    james text,
    PRIMARY KEY (name)
);
"""

STEP = SchemaStep(6, "whole memory, and its owner", CQL)
