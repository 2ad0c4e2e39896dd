"""Spark's checkpoint directory, as far as it must be looked into. It is disposable.

Its state is only the keys of the last D + W, so a fresh one that starts from the bookmark before
that span loses nothing. That is the one way out when it is lost, corrupt, incompatible, or when its
watermark lies ahead of the clock (rows would be dropped without an error).
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from checkpoints.clock import MICROS_A_MILLI
from reconcilers.model import Micros

SET_ASIDE = "set-aside"


def query_id(directory: Path) -> str | None:
    """The identity that Spark gave this checkpoint; a re-executed batch has the same one."""
    try:
        identity = json.loads((directory / "metadata").read_text(encoding="utf-8"))["id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(identity)


@dataclass(frozen=True, slots=True)
class Planned:
    """What Spark wrote down before it ran a batch: times in µs, end offsets of the Kafka source."""

    batch_time: Micros
    watermark: Micros
    end: dict[str, dict[int, int]]


def planned(directory: Path, batch_id: int) -> Planned | None:
    """The plan of a batch, None when there is none that can be read."""
    try:
        lines = (directory / "offsets" / str(batch_id)).read_text(encoding="utf-8").splitlines()
        times, offsets = json.loads(lines[1]), json.loads(lines[2])
        end = {
            topic: {int(partition): int(offset) for partition, offset in partitions.items()}
            for topic, partitions in offsets.items()
        }
        began, watermark = int(times["batchTimestampMs"]), int(times["batchWatermarkMs"])
        return Planned(began * MICROS_A_MILLI, watermark * MICROS_A_MILLI, end)
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError):
        return None


def newest(directory: Path) -> Planned | None:
    """The plan of the newest batch, None when there is none."""
    try:
        ids = [int(each.name) for each in (directory / "offsets").iterdir() if each.name.isdigit()]
    except OSError:
        return None
    return planned(directory, max(ids)) if ids else None


def set_aside(directory: Path) -> Path | None:
    """Move the checkpoint away, keeping only the last one so treated; None when there was none."""
    if not directory.exists():
        return None
    kept = directory.with_name(f"{directory.name}.{SET_ASIDE}")
    shutil.rmtree(kept, ignore_errors=True)
    return directory.rename(kept)
