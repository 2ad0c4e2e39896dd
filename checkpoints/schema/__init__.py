"""The schema of our own keyspace, as numbered steps; what each made is never changed again.

A step is one file, ``step_NNN.py``, and one line in `STEPS`. Its docstring says what it changes,
what it needs, and whether the product before it can still read the keyspace. `upgrade` runs the
steps that a keyspace has not finished.

::

    schema, finished steps ─▶ gap_of (pure) ─▶ upgrade: statements, copies and records, in order

A finished step is one row of ``schema_steps``, so a process killed midway leaves its place visible.
The *version* of a keyspace is the number of steps that are finished without a gap.
"""

from checkpoints.schema import (
    step_001,
    step_002,
    step_003,
    step_004,
    step_005,
    step_006,
    step_007,
    step_008,
    step_009,
    step_010,
    step_011,
    step_012,
    step_013,
    step_014,
    step_015,
    step_016,
)
from checkpoints.schema.step import SchemaStep

STEPS: tuple[SchemaStep, ...] = (
    step_001.STEP,
    step_002.STEP,
    step_003.STEP,
    step_004.STEP,
    step_005.STEP,
    step_006.STEP,
    step_007.STEP,
    step_008.STEP,
    step_009.STEP,
    step_010.STEP,
    step_011.STEP,
    step_012.STEP,
    step_013.STEP,
    step_014.STEP,
    step_015.STEP,
    step_016.STEP,
)
