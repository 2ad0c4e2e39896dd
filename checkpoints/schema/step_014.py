"""Step 14: the rows of the listing that are left together, as members of one finding a reason.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- bucket: of `BUCKETS`, by the key's text; reason: a kind. Times are µs.
CREATE TABLE IF NOT EXISTS $ks.lost_rows (
    family text,
    bucket int,
    key text,
    reason text,
    counted_at bigint,
    seen_at bigint,
    PRIMARY KEY ((family, bucket), key)
);
"""

STEP = SchemaStep(14, "rows that are left together", CQL)
