"""The breaker of corrections over a journal, by default one that nothing opens."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from checkpoints.journal import Journal
from reconcilers.limits.breakers import OF_COUNTERS, Breaker, BreakerLimits
from reconcilers.words.model import Micros
from streaming.counters.correction_breaker import CorrectionBreaker
from streaming.monitoring.metrics import Metrics
from streaming.pipeline.breakers import BreakerWatch

NOTHING_OPENS = BreakerLimits(10**9, 1.0, opens=Breaker.CORRECTIONS, keys="counters")


def correction_breaker(
    journal: Journal,
    clock: Callable[[], Micros],
    limits: BreakerLimits = NOTHING_OPENS,
    a_minute: int = 10**9,
    metrics: Metrics | None = None,
) -> CorrectionBreaker:
    """As the product makes it, with a clock for both; what was open stays so."""
    shown = metrics or Metrics(CollectorRegistry())
    watch = BreakerWatch(journal, limits, shown, own=OF_COUNTERS)
    watch.recall()
    return CorrectionBreaker(watch, clock, lambda: clock() / 1e6, a_minute)
