"""Step 3: a row for each stream that says up to where it has settled its topics.

It has no TTL: a stream that stood still for weeks goes on from there. The bookmarks of single
batches stay as they are: a stream that has no row here yet begins where they say it is safe.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- offsets and ids as JSON: what is settled by topic and partition, the ids of topics and cluster.
CREATE TABLE IF NOT EXISTS $ks.settled_offsets (
    stream text,
    recorded_at bigint,
    offsets text,
    ids text,
    PRIMARY KEY (stream)
);

ALTER TABLE $ks.named_bookmarks ADD IF NOT EXISTS ids text;
"""

STEP = SchemaStep(3, "settled offsets", CQL)
