"""Whether Cassandra answers more slowly than usual, by the driver's own requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from statistics import median
from threading import Lock
from typing import Any

from cassandra import OperationTimedOut, Timeout
from cassandra.cluster import Session
from cassandra.protocol import OverloadedErrorMessage

WINDOW = 1.0
"""Seconds after which the answers since then are judged."""
FEWEST = 8
"""Answers in a window, without which their times show nothing."""
SLOW_TIMES = 4.0
"""An answer that takes so many times as long as usual for its statement is slow."""
NEVER_SLOW = 0.05
"""Seconds: no such answer is slow."""
USUAL_OF = 200
"""About so many answers of a statement make its usual time: it follows a load that stays."""
OVERLOADED = (OperationTimedOut, Timeout, OverloadedErrorMessage)


class ServerLoad:
    """Counts the windows in which Cassandra was slow. Thread-safe; ``clock`` is monotonic (s)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.slow_windows = 0
        """Windows in which the usual answer was slow, or any request timed out."""
        self._clock, self._lock = clock, Lock()
        self._usual: dict[Hashable, float] = {}
        self._since, self._times, self._failed = clock(), list[float](), 0

    def answered(self, statement: Hashable, seconds: float) -> None:
        """Take in the time of an answer."""
        with self._lock:
            usual = self._usual.get(statement, seconds)
            self._usual[statement] = usual + (seconds - usual) / USUAL_OF
            self._times.append(seconds / usual if seconds > NEVER_SLOW else 1.0)
            self._judge()

    def failed(self, error: Exception) -> None:
        """Take in a failed request: a time-out counts, also without other answers."""
        with self._lock:
            self._failed += isinstance(error, OVERLOADED)
            self._judge()

    def _judge(self) -> None:
        now = self._clock()
        enough = self._failed or len(self._times) >= FEWEST
        if now - self._since < WINDOW or not enough:
            return
        self.slow_windows += bool(self._failed or median(self._times) >= SLOW_TIMES)
        self._since, self._times, self._failed = now, [], 0


LOAD = ServerLoad()
"""That of this process."""


def watch(session: Session, load: ServerLoad = LOAD) -> None:
    """Take in every request of a session."""

    def sent(future: Any) -> None:
        began, statement = time.monotonic(), _kind(future.query)
        measured = list[float]()

        def answered(_: object) -> None:
            if not measured:  # later pages are requested when the reader wants them
                measured.append(time.monotonic() - began)
                load.answered(statement, measured[0])

        future.add_callbacks(answered, load.failed)

    session.add_request_init_listener(sent)


def _kind(query: Any) -> Hashable:
    """What requests have in common that usually take as long."""
    prepared = getattr(query, "prepared_statement", None)
    return type(query).__name__ if prepared is None else bytes(prepared.query_id)
