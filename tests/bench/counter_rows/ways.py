"""All ways to count that are compared."""

from tests.bench.counter_rows.stream import AheadTable, RecountTable, StreamTable
from tests.bench.counter_rows.tables import (
    ConditionTable,
    CounterTable,
    Counting,
    DeduplicatedTable,
    RetriedCounterTable,
    SubrowTable,
)

RACING: tuple[type[Counting], ...] = (
    CounterTable,
    ConditionTable,
    DeduplicatedTable,
    StreamTable,
    AheadTable,
    SubrowTable,
)
"""Without faults a counter is as fast whether it is retried or not."""
DISTURBED: tuple[type[Counting], ...] = (
    CounterTable,
    RetriedCounterTable,
    ConditionTable,
    DeduplicatedTable,
    StreamTable,
    RecountTable,
    SubrowTable,
)
"""Where something goes wrong, nobody waits or not makes no difference to what is stored."""
STREAMED = (StreamTable, RecountTable)
"""Those that events can lead astray."""
