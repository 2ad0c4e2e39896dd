"""Executors of a cluster that a test kills or pauses while they are at a chosen point."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.stack import sabotage


@dataclass(frozen=True)
class Blows:
    """Points of the workers' code, as in `sabotage.sitecustomize`; files are in ``folder``."""

    points: Sequence[str]
    folder: Path

    def options(self, code: str) -> dict[str, Any]:
        """The options of Spark with which executors know the points.

        The code is on their path from the beginning: it is changed before the first task.
        """
        path = os.pathsep.join([str(Path(str(sabotage.__file__)).parent), code])
        return {
            "spark.executorEnv.PYTHONPATH": path,
            "spark.executorEnv.BLOWS": ";".join(self.points),
            "spark.executorEnv.BLOWS_AT": str(self.folder),
        }

    def arm(self, point: str, signal: str = "SIGKILL") -> None:
        """The next executor at this point gets the signal, with all of its processes."""
        fresh = self._file(point).with_suffix(".new")
        fresh.write_text(signal, encoding="ascii")
        fresh.rename(self._file(point))

    def arm_for(self, point: str, text: str) -> None:
        """Until `disarm`, each executor that is here with such arguments is killed."""
        self.arm(point, f"SIGKILL {text}")

    def disarm(self, point: str) -> None:
        """No executor gets the signal any more."""
        self._file(point).unlink()

    def has_hit(self, point: str) -> bool:
        """Whether an executor got the signal there."""
        return self._file(point).with_suffix(".hit").exists()

    def _file(self, point: str) -> Path:
        return self.folder / str(self.points.index(point))
