"""Waits, at a start, for servers that do not answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from reconcilers.words.errors import Rejected, Retryable
from streaming.commands.running.threads import Threads

log = logging.getLogger("reconciler")

RETRY = 5.0
"""Seconds between two attempts."""
TOLD_EVERY = 60.0
"""Seconds between two lines of the log."""

T = TypeVar("T")


def until_answered(
    threads: Threads, ask: Callable[[], T], clock: Callable[[], float] = time.monotonic
) -> T:
    """The answer of ``ask``, which is asked again while a server does not answer.

    Meanwhile the process is alive and not ready. Raises what ``ask`` raises if a person has to act,
    and the last `Retryable` if the process is to stop. ``clock`` is monotonic (s).
    """
    began, told_at = threads.health.starting, float("-inf")
    while True:
        threads.starting.turn()
        try:
            answer = ask()
        except Rejected:
            raise
        except Retryable as away:
            threads.before_waiting()
            threads.health.starting = f"it waits for a server: {away}"
            if clock() - told_at >= TOLD_EVERY:
                told_at = clock()
                log.warning("waiting for a server: %s", away)
            if threads.starting.wait(RETRY):
                raise
        else:
            if threads.health.starting != began:
                log.info("the servers answer")
            threads.health.starting = began
            return answer
