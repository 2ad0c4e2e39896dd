"""Which messages exist, and who works on which: no two workers change one message at once.

Like a user who waits for one answer before the next click. Without it, two flag changes
of one message could overtake each other on their way to the projection, and the workload
would leave differences that nobody planted.
"""

import random
import threading
import time
from uuid import UUID


class Directory:
    """The messages of a workload; safe for threads.

    A message rests `rest_s` seconds after each change, so that clients whose clocks differ
    by less do not make their writes appear in the wrong order.
    """

    def __init__(self, rest_s: float = 0.0) -> None:
        self.rest_s = rest_s
        self._idle: list[UUID] = []
        self._rested_at: dict[UUID, float] = {}
        self._lock = threading.Lock()

    def check_out(self, chance: random.Random) -> UUID | None:
        """A rested message that nobody works on, now this caller's; None where none was found."""
        with self._lock:
            for _ in range(min(10, len(self._idle))):
                place = chance.randrange(len(self._idle))
                messageid = self._idle[place]
                if self._rested_at[messageid] <= time.monotonic():
                    self._idle[place] = self._idle[-1]
                    self._idle.pop()
                    return messageid
        return None

    def check_in(self, messageid: UUID) -> None:
        """Give a message back (or a new one for the first time)."""
        with self._lock:
            self._rested_at[messageid] = time.monotonic() + self.rest_s
            self._idle.append(messageid)

    def __len__(self) -> int:
        with self._lock:
            return len(self._idle)
