"""The schema of our own keyspace, as numbered steps; a released step is never changed again.

A step is one file, ``step_NNN.py``, and one line in `STEPS`. Its docstring says what it changes,
what it needs, and whether the product before it can still read the keyspace. `upgrade` runs the
steps that a keyspace has not finished.

::

    schema, finished steps ─▶ gap_of (pure) ─▶ upgrade: statements, copies and records, in order

A finished step is one row of ``schema_steps``, so a process killed midway leaves its place visible.
The *version* of a keyspace is the number of steps that are finished without a gap.
"""

from checkpoints.schema import step_001
from checkpoints.schema.step import SchemaStep

STEPS: tuple[SchemaStep, ...] = (step_001.STEP,)
