"""Step 16: what a finding waits for, as a value.

Needs nothing. The product before it refuses a keyspace with this step.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- waits: JSON, the wait's name and why; null unless the finding is held or observed.
ALTER TABLE $ks.findings ADD IF NOT EXISTS waits text;
"""

STEP = SchemaStep(16, "what a finding waits for", CQL)
