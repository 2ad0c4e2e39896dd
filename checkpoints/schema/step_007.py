"""Step 7: a row for each pause that a person asked for, with who and why, and how it ended.

Ending one writes other cells than its beginning, so the clocks of two hosts cannot undo either.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- what: all, removals, or the name of a projection or tally. until: µs, null: until it is ended.
CREATE TABLE IF NOT EXISTS $ks.pauses (
    scope text,
    asked_at bigint,
    what text,
    who text,
    reason text,
    until bigint,
    ended_at bigint,
    ended_by text,
    end_reason text,
    PRIMARY KEY (scope, asked_at, what)
);
"""

STEP = SchemaStep(7, "pauses", CQL)
