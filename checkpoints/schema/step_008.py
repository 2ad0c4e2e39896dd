"""Step 8: a row for each sweep, and one for each range of tokens that it has gone through.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- systems: names of projections, with commas. Times are µs.
CREATE TABLE IF NOT EXISTS $ks.sweeps (
    scope text,
    began_at bigint,
    who text,
    reason text,
    systems text,
    ranges int,
    truth_swept_at bigint,
    ended_at bigint,
    outcome text,
    PRIMARY KEY (scope, began_at)
) WITH CLUSTERING ORDER BY (began_at DESC);

-- Deleted when the sweep has ended.
CREATE TABLE IF NOT EXISTS $ks.swept_ranges (
    scope text,
    began_at bigint,
    table_name text,
    number int,
    rows bigint,
    suspects bigint,
    PRIMARY KEY ((scope, began_at), table_name, number)
);
"""

STEP = SchemaStep(8, "sweeps", CQL)
