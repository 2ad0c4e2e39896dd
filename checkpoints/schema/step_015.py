"""Step 15: what speaks against the evidence of a delete.

When a read last found a row in the truth although a delete of it had been received, and which
deletes of projection rows are the reconciler's own.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- had_at: µs of our clock.
ALTER TABLE $ks.lineage_by_message ADD IF NOT EXISTS had_at bigint;

ALTER TABLE $ks.lineage_by_row ADD IF NOT EXISTS had_at bigint;

-- sent_at: of a delete of ours, µs of our clock. Written before the delete is sent, so that its
-- event is known when it comes.
ALTER TABLE $ks.projection_deletes ADD IF NOT EXISTS sent_at bigint;
"""

STEP = SchemaStep(15, "what speaks against a delete", CQL)
