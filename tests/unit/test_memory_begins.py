"""After a loss of events memory begins anew: at its end, and never in the future."""

import pytest

from checkpoints.clock import now_micros
from checkpoints.memory import MemoryLineage
from reconcilers.memory import Watching
from reconcilers.model import Micros
from streaming.commands.driver import _events_lost

HOUR: Micros = 3_600_000_000


@pytest.mark.parametrize("before", [None, HOUR])
def test_memory_begins_where_the_span_ends(before: Micros | None) -> None:
    lineage = MemoryLineage()
    if before is not None:
        lineage.watch_from(before)
    _events_lost(lineage, 2 * HOUR)
    assert lineage.watching() == Watching(2 * HOUR)


def test_it_never_goes_back() -> None:
    lineage = MemoryLineage()
    lineage.watch_from(3 * HOUR)
    _events_lost(lineage, 2 * HOUR)
    assert lineage.watching() == Watching(3 * HOUR)


def test_of_a_clock_that_was_ahead_it_begins_now() -> None:
    """Canaries of a clock two hours ahead end a span that lies in the future."""
    lineage, before = MemoryLineage(), now_micros()
    _events_lost(lineage, before + 2 * HOUR)
    watching = lineage.watching()
    assert watching is not None
    assert before <= watching.since <= now_micros()
