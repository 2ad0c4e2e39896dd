"""`reconcile` as a process of its own, as the demo and the fault-injection runs start it."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy import quick_spark
from deploy.embedded.jars import ROOT

RECONCILE = (sys.executable, "-m", "streaming.app")
OWN_ENVIRONMENT = "RECONCILE_"


def launched(config: Path, log: Path, prefix: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """A stream in repair mode, in a session of its own; what it says is added to its log.

    The words of `prefix` come before its command, as those of `Daemon.precede`.
    """
    with log.open("ab") as said:
        return subprocess.Popen(
            [*prefix, *RECONCILE, "stream", "--mode", "repair", "--config", str(config)],
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def answered(
    config: Path, words: Sequence[str], timeout_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Another command of `reconcile` at its end, with what it said.

    Raises subprocess.TimeoutExpired.
    """
    return subprocess.run(
        [*RECONCILE, *words, "--config", str(config)],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def environment() -> dict[str, str]:
    """That of this process without the settings of an installation, and with a quick Spark."""
    ours = {name: each for name, each in os.environ.items() if not name.startswith(OWN_ENVIRONMENT)}
    return {**quick_spark.environment(), **ours}


def metrics_port(log: str) -> int | None:
    """The port that the log names last; None as long as it names none."""
    named = re.findall(r"metrics on port (\d+)", log)
    return int(named[-1]) if named else None
