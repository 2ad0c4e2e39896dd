"""How many suspects our own stream has confirmed, mostly by one serial read of the truth each."""

from __future__ import annotations

from streaming.monitoring.scrape import scrape
from streaming.settings import MetricsSettings

SUSPECTS = "reconciler_suspects"


def suspects_confirmed(settings: MetricsSettings) -> int | None:
    """Since the stream's process began; None where no stream serves its metrics."""
    families = scrape(settings)
    if families is None:
        return None
    samples = [sample for each in families if each.name == SUSPECTS for sample in each.samples]
    return int(sum(sample.value for sample in samples if sample.name == f"{SUSPECTS}_total"))


def newly_confirmed(before: int | None, after: int | None) -> int | None:
    """Between two answers; all of the second where the process began anew; None if not known."""
    if before is None or after is None:
        return None
    return after - before if after >= before else after
