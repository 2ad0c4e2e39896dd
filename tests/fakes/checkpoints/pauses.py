"""The fake of `checkpoints.pauses`, in this process's memory."""

from __future__ import annotations

from collections.abc import Collection

from checkpoints.pauses import Resumed
from reconcilers.limits.pause import Pause


class MemoryPauses:
    """`checkpoints.pauses.Pauses` in a dictionary."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, int], tuple[Pause, Resumed | None]] = {}

    def begin(self, pause: Pause) -> None:
        """Keep it; once more is the same."""
        self._all.setdefault((pause.what, pause.asked_at), (pause, None))

    def replace(self, before: Collection[Pause], pause: Pause, by: Resumed) -> None:
        ended = {(each.what, each.asked_at): (each, by) for each in before}
        self._all = {(pause.what, pause.asked_at): (pause, None)} | self._all | ended

    def standing(self) -> tuple[Pause, ...]:
        return tuple(pause for pause, ended in self.history() if ended is None)

    def end(self, pause: Pause, by: Resumed) -> None:
        self._all[pause.what, pause.asked_at] = pause, by

    def history(self) -> tuple[tuple[Pause, Resumed | None], ...]:
        return tuple(sorted(self._all.values(), key=lambda each: (each[0].asked_at, each[0].what)))
