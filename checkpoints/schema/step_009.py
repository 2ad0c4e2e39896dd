"""Step 9: a row for each hold that a person has put on a key, with who and why, and how it ended.

Ending one writes other cells than its beginning, so the clocks of two hosts cannot undo either.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- bucket = hash of the key, 16 of them, as of findings. It stands while ended_at is null.
CREATE TABLE IF NOT EXISTS $ks.holds (
    family text,
    bucket int,
    projection text,
    key text,
    asked_at bigint,
    who text,
    reason text,
    ended_at bigint,
    ended_by text,
    end_reason text,
    PRIMARY KEY ((family, bucket), projection, key, asked_at)
);
"""

STEP = SchemaStep(9, "holds", CQL)
