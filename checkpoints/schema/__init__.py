"""The schema of our keyspace, as numbered steps. A released step never changes.

A step is one file, ``step_NNN.py``, and one line in `STEPS`. Its docstring says what it changes,
what it needs, and whether the previous version of the product can still read the keyspace.
`upgrade` runs the steps that a keyspace has not finished.

::

    schema, finished steps ─▶ gap_of (pure) ─▶ upgrade: statements, copies and records, in order

Each finished step has a row in ``schema_steps``, which shows where a killed process stopped. The
*version* of a keyspace is the number of steps that are finished without a gap.
"""

from checkpoints.schema import step_001, step_002, step_003, step_004, step_005
from checkpoints.schema.step import SchemaStep

STEPS: tuple[SchemaStep, ...] = (
    step_001.STEP,
    step_002.STEP,
    step_003.STEP,
    step_004.STEP,
    step_005.STEP,
)
