"""Starts the sampler's thread."""

from __future__ import annotations

from streaming.commands.running.threads import Threads
from streaming.commands.wiring.sampler import SamplerParts
from streaming.monitoring.health import SLOW_HUNG_AFTER


def start_sampler(sampled: SamplerParts | None, threads: Threads) -> None:
    """Start the sampler, if it is on. Its first read, of ten minutes of changes, takes minutes."""
    if sampled is not None:
        threads.start("sampler", sampled.sampler.run, SLOW_HUNG_AFTER)
