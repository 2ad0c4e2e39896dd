"""Step 4: beside what is settled, up to which canary each lane was heard.

Written with the settled offsets, for it is as far: a stream that goes on after them knows whether
canaries are missing. Without it the first canary of each lane is believed.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- node, topic, partition, number and time of a canary, since when one is missing, as JSON.
ALTER TABLE $ks.settled_offsets ADD IF NOT EXISTS heard text;

ALTER TABLE $ks.named_bookmarks ADD IF NOT EXISTS heard text;
"""

STEP = SchemaStep(4, "canaries heard", CQL)
