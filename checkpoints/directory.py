"""Spark's checkpoint directory, as far as it must be looked into. It is disposable.

Its state is only the keys of the last D + W, so a fresh one that starts from the bookmark before that
span loses nothing. That is the one way out when it is lost, corrupt, incompatible, or when its
watermark lies ahead of the clock (rows would be dropped without an error).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

SET_ASIDE = "set-aside"


def query_id(directory: Path) -> str | None:
    """The identity that Spark gave this checkpoint; a re-executed batch has the same one."""
    try:
        identity = json.loads((directory / "metadata").read_text(encoding="utf-8"))["id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return str(identity)


def watermark_ms(directory: Path) -> int | None:
    """The watermark (ms since the epoch) of the newest planned batch, None when there is none."""
    try:
        batches = sorted(
            int(each.name) for each in (directory / "offsets").iterdir() if each.name.isdigit()
        )
        newest = (directory / "offsets" / str(batches[-1])).read_text(encoding="utf-8")
        return int(json.loads(newest.splitlines()[1])["batchWatermarkMs"])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None


def set_aside(directory: Path) -> Path | None:
    """Move the checkpoint away, keeping only the last one so treated; None when there was none."""
    if not directory.exists():
        return None
    kept = directory.with_name(f"{directory.name}.{SET_ASIDE}")
    shutil.rmtree(kept, ignore_errors=True)
    return directory.rename(kept)
