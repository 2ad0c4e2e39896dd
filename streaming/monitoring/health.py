"""Whether a process is alive and ready, from the turns of its threads and from what it does.

Each thread runs in a loop, and waits on the event that ends it. The event is wrapped, so each wait
shows that the thread turns: no thread reports it itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event

from checkpoints.clock import now_micros, to_seconds
from checkpoints.lease import Lease
from reconcilers.declared.families.message import MESSAGE
from streaming.monitoring.metrics import Metrics
from streaming.settings import StreamSettings

HUNG_AFTER = 60.0
"""Seconds without a turn after which a thread counts as hung."""
SLOW_HUNG_AFTER = 900.0
"""The same for a sweep, for counting and for the sampler, where one read takes minutes, and for a
step of the start: our tables are made, and Spark begins. What a thread does before its first wait
is such a step, and what it does after it was told to end."""
STARTING = "start"
"""The name of the thread that starts a process, until its supervising thread begins."""

BATCH_WITHIN = 5
"""Times D + W within which a stream that is ready has ended a batch."""


class TurningStop(Event):
    """The event that ends a thread, as the thread sees it: it notes when the thread turns.

    A thread that waits on it does not hang, however long it waits. It has ``begun`` with its first
    wait. ``clock`` is monotonic (s).
    """

    def __init__(self, stop: Event, hung_after: float, clock: Callable[[], float]) -> None:
        super().__init__()
        self._stop, self._hung_after, self._clock = stop, hung_after, clock
        self._busy_since: float | None = clock()
        self.begun = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait as the wrapped event does."""
        self._busy_since, self.begun = None, True
        try:
            return self._stop.wait(timeout)
        finally:
            self._busy_since = self._clock()

    def is_set(self) -> bool:
        """Whether the wrapped event is set; to ask is a turn."""
        self.turn()
        return self._stop.is_set()

    def turn(self) -> None:
        """Note that the thread turns."""
        self._busy_since = self._clock()

    def set(self) -> None:
        """Set the wrapped event."""
        self._stop.set()

    def clear(self) -> None:
        """Clear the wrapped event."""
        self._stop.clear()

    def ended(self) -> None:
        """The thread has ended, and hangs no more."""
        self._busy_since = None

    def hung_for(self) -> float | None:
        """Seconds since the last turn of a thread that hangs; None if it turns or waits."""
        since = self._busy_since
        busy = 0.0 if since is None else self._clock() - since
        turns = self.begun and not self._stop.is_set()
        return busy if busy > (self._hung_after if turns else SLOW_HUNG_AFTER) else None


@dataclass(slots=True)
class Health:
    """The health of one process. ``supervising`` is the thread without which it is not alive.

    ``checks`` return why the process is not ready, None if they find nothing. ``starting`` is why
    it is not ready before it has begun. One that is ``standing_by`` says for what; it has not.
    """

    supervising: str
    clock: Callable[[], float] = time.monotonic
    checks: list[Callable[[], str | None]] = field(default_factory=list)
    starting: str = "it starts"
    standing_by: str | None = None
    _turning: dict[str, TurningStop] = field(default_factory=dict)

    def watched(self, name: str, stop: Event, hung_after: float = HUNG_AFTER) -> TurningStop:
        """The event that this thread is to wait on instead of ``stop``.

        With the supervising thread the start is over.
        """
        if name == self.supervising:
            self._turning.pop(STARTING, None)
        turning = self._turning[name] = TurningStop(stop, hung_after, self.clock)
        return turning

    def dead(self) -> str | None:
        """Why the process is not alive: its start hangs, or its supervising thread; else None."""
        for name in (STARTING, self.supervising):
            turning = self._turning.get(name)
            hung = None if turning is None else turning.hung_for()
            if hung is not None:
                return _told(name, hung)
        return None

    def begun(self) -> bool:
        """Whether the supervising thread has begun its work."""
        turning = self._turning.get(self.supervising)
        return turning is not None and turning.begun

    def unready(self) -> list[str]:
        """Why the process is not ready; empty if it is."""
        return list(self._unready())

    def _unready(self) -> Iterator[str]:
        if not self.begun():
            yield self.standing_by or self.starting
        for name, turning in sorted(self._turning.items()):
            hung = turning.hung_for()
            if hung is not None:
                yield _told(name, hung)
        yield from (why for why in (check() for check in self.checks) if why is not None)


def readiness(
    stream: StreamSettings, metrics: Metrics, lease: Lease | None
) -> list[Callable[[], str | None]]:
    """The checks of a stream: it holds its lease, if it needs one, and has ended a batch lately."""
    longest = BATCH_WITHIN * (stream.delay + stream.window)

    def held() -> str | None:
        return None if lease is None or lease.holds() else "the lease is not held"

    def batched() -> str | None:
        name, labels = "reconciler_last_batch_timestamp_seconds", {"family": MESSAGE.name}
        ended = metrics.registry.get_sample_value(name, labels)
        if ended is None:
            return "no batch has ended yet"
        late = to_seconds(now_micros()) - ended
        return f"no batch has ended for {late:.0f} s" if late > longest else None

    return [held, batched]


def _told(name: str, hung: float) -> str:
    return f"thread {name} hangs: no turn for {hung:.0f} s"
