"""Waiting for a condition instead of for a time."""

import time
from collections.abc import Callable

from deploy.embedded.errors import StartError

HANG_S = 600.0
"""How long a start, or a test, waits for a condition: against hangs, so a slow machine has time."""


def until(condition: Callable[[], bool], timeout_s: float, what: str, every_s: float = 0.2) -> None:
    """Return as soon as `condition()` is true, asked every `every_s` seconds.

    Raises StartError, naming `what`, when `timeout_s` seconds have passed.
    """
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise StartError(f"{what}: not so after {timeout_s:.0f} s")
        time.sleep(every_s)
