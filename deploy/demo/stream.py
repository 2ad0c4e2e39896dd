"""`reconcile stream --mode repair` as a process: its settings, its start, its end."""

import contextlib
import os
import signal
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deploy.demo.pace import Pace
from deploy.demo.sight import Sight, look
from deploy.embedded.jars import JARS
from deploy.embedded.process import processes_of_session
from deploy.embedded.settings_file import Sections, as_toml, over
from deploy.embedded.wait import until
from deploy.mailserver.counters import COUNTER_TABLES
from deploy.mailserver.history import MESSAGES
from deploy.mailserver.indexes import INDEX_PROJECTIONS
from deploy.stream_process import answered, launched, metrics_port
from reconcilers.words.exit_codes import ExitCode

RECHECK_DELAYS = 3
SWEPT_IN = 16
"""Ranges of each table, which are small here."""
SUSPECTS_TOPIC = "reconciler.suspects"

START_S = 900.0
MEMORY_HAS_BEGUN = "lineage has begun"
STOP_S = 40.0
COMMAND_S = 1800.0

SLOW_CAPTURE_S = 60
"""Everything runs on one machine, which is busy: that alone is no reason to let removals wait."""


class StreamDiedError(Exception):
    """The reconciler ended by itself; the text says what it said last."""


def demo_settings(stack: Mapping[str, Mapping[str, Any]], folder: Path, pace: Pace) -> Sections:
    """The stack's settings with short windows, and limits beyond the faults of the demo."""
    changes: Sections = {
        "kafka": {"suspects_topic": SUSPECTS_TOPIC},
        "stream": {
            "delay": pace.delay,
            "window": pace.window,
            "checkpoint_dir": str(folder / "checkpoint"),
            "jars": str(JARS / "spark"),
        },
        "repair": {
            "projections": [MESSAGES, *INDEX_PROJECTIONS],
            "recheck_interval": RECHECK_DELAYS * pace.delay,
            "suspects_per_minute": 5000,
            "writes_per_minute": 5000,
            "suspect_share": 1.0,
            "removals_per_minute": 1000,
            "removal_share": 1.0,
            "allow_unsafe_settings": True,
        },
        "tally": {
            "projections": list(COUNTER_TABLES),
            "window": pace.window,
            "max_update_lag": pace.delay,
            "max_quota_lag": pace.delay,
            "after_outage": pace.delay,
            "correction_max_messages": 10_000,
            "correction_max_octets": 10**12,
            "corrections_per_minute": 1000,
            "correction_share": 1.0,
        },
        "rights": {"truth": "eventstore"},
        "attachments": {"tables": ["attachmentmessageid"]},
        "sweep": {"ranges": SWEPT_IN, "when_needed": False},
        "canary": {"usual_delay": SLOW_CAPTURE_S, "lost_after": 2 * pace.delay},
        "metrics": {"port": 0, "canary_port": 0, "sweep_port": 0},
    }
    return over(stack, changes)


class Stream:
    """The process, with its Spark JVM and Python workers; all of them end with it.

    As a context manager it is started inside, and gone after.
    """

    def __init__(self, stack_settings: Path, folder: Path, pace: Pace, more: Sections) -> None:
        """Write its settings file into `folder`, where its log goes too.

        `more` has the settings of a Spark cluster, or of a login.
        """
        self.config = folder / "demo.toml"
        self.log = folder / "reconcile.log"
        stack = tomllib.loads(stack_settings.read_text(encoding="utf-8"))
        sections = demo_settings(over(stack, more), folder, pace)
        self.config.write_text(as_toml(sections), encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None

    def __enter__(self) -> "Stream":
        self.log.unlink(missing_ok=True)
        self._process = launched(self.config, self.log)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """In order where all went well; at once where somebody is waiting for the end."""
        if self._process is not None:
            try:
                if kind is None:
                    self._process.terminate()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(STOP_S)
            finally:  # also where the waiting is interrupted
                _end_at_once(self._process)

    def wait_until_watching(self) -> None:
        """Until its memory has begun. Raises StreamDiedError, embedded's StartError."""
        until(self._remembers, START_S, f"the reconciler watches (see {self.log})", 0.5)

    def _remembers(self) -> bool:
        sight = self.sight()
        return sight is not None and sight.last_batch > 0 and MEMORY_HAS_BEGUN in self._text()

    def command(self, *words: str, ends_with: ExitCode = ExitCode.DONE) -> list[str]:
        """Another command of `reconcile`, as a process of its own; what it says at its end.

        Raises StreamDiedError where it does not end with this exit code.
        """
        done = answered(self.config, words, COMMAND_S)
        if done.returncode != ends_with:
            told = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise StreamDiedError(
                f"`reconcile {words[0]}` ended with {done.returncode}: {' '.join(told)}"
            )
        return done.stdout.splitlines()

    def sight(self) -> Sight | None:
        """What its metrics say now; None while it does not answer. Raises StreamDiedError."""
        if self._process is not None and self._process.poll() is not None:
            raise StreamDiedError(
                f"the reconciler ended with {self._process.returncode}: {self._last_words()}"
            )
        self._port = self._port or metrics_port(self._text())
        return look(self._port) if self._port is not None else None

    @property
    def page(self) -> str:
        """The address of its page, once `sight` has seen its metrics."""
        return f"http://127.0.0.1:{self._port}/"

    @property
    def pid(self) -> int | None:
        """The number of its process; None before its start."""
        return None if self._process is None else self._process.pid

    def _text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def _last_words(self) -> str:
        lines = self._text().strip().splitlines() or ["it said nothing"]
        return lines[-1][:500]


def _end_at_once(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to it and to all that it started, and wait for it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # Spark's Python workers are a process group of their own, in the same session.
    for pid in processes_of_session(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
