"""Step 10: what a pilot names, beside the pauses; null in the row of any other pause.

Needs step 7. The product before it refuses a keyspace with this step: it would not know that a
pilot's pause covers anything.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- pilot: users, mailboxes, systems and kinds, as JSON; what is 'pilot' then.
ALTER TABLE $ks.pauses ADD IF NOT EXISTS pilot text;
"""

STEP = SchemaStep(10, "pilots", CQL)
