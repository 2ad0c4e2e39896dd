"""The stop of a thread that only pauses: time does not pass."""

from __future__ import annotations

from threading import Event


class Pauses(Event):
    """Is set after so many pauses; says how long they were."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.taken = most, list[float]()

    def wait(self, timeout: float | None = None) -> bool:
        self.taken.append(timeout or 0)
        if len(self.taken) > self.most:
            self.set()
        return self.is_set()
