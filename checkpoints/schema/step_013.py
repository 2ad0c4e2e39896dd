"""Step 13: the generation of this keyspace, in its owner and in what holds repairs back.

A static cell of pauses, breakers and holds: a table that is truncated has none any more.

Needs steps 1, 6, 7 and 9. The product before it refuses a keyspace with this step; one that runs on
stumbles over a partition that has the cell and no row: stop it first.
"""

from checkpoints.schema.step import SchemaStep

CQL = """
-- µs; only goes up, by lightweight transactions: `reconcilers.limits.generation`.
ALTER TABLE $ks.owner ADD IF NOT EXISTS generation bigint;

ALTER TABLE $ks.pauses ADD IF NOT EXISTS generation bigint static;

ALTER TABLE $ks.breakers ADD IF NOT EXISTS generation bigint static;

ALTER TABLE $ks.holds ADD IF NOT EXISTS generation bigint static;
"""

STEP = SchemaStep(13, "the generation of the keyspace", CQL)
