"""`reconcile stream` as its users run it: a process, its settings file, its log, its journal."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.embedded.settings_file import as_toml
from deploy.embedded.wait import HANG_S
from tests.endpoints import Endpoints

DELAY, WINDOW = 3, 2
"""Seconds. A batch starts each window: an idle one takes a third of a second of CPU time, and three
runs share two cores."""
PATIENCE = HANG_S
"""Seconds a test waits for a condition: far beyond what it takes, so that only a fault ends it."""


def until(what: str, condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Wait until the condition is true; its value. Fails naming what did not happen."""
    end = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience:.0f} s: {what}")
        time.sleep(0.2)


def write_settings(
    path: Path, stack: Endpoints, keyspace: str, own: str, changes: Mapping[str, Mapping[str, Any]]
) -> Path:
    """A settings file for this stack with short windows; ``changes`` by section."""
    settings = tomllib.loads(stack.config.read_text(encoding="utf-8"))
    defaults: dict[str, dict[str, Any]] = {
        "cassandra": {"keyspace": keyspace, "own_keyspace": own},
        "kafka": {
            "group": own,
            "suspects_topic": f"{own}.suspects",
            "observe_suspects_topic": f"{own}.suspects.observe",
            "dead_letters_topic": f"{own}.dead-letters",
        },
        "stream": {
            "delay": DELAY,
            "window": WINDOW,
            "checkpoint_dir": str(path.parent / "checkpoint"),
            "jars": str(Path(".jars/spark").resolve()),
            "restart_backoff_max": 5,
        },
        "repair": {
            "recheck_interval": 5,
            "projections": ["messages"],
            "allow_unsafe_settings": True,
            "share_min_keys": 1_000_000,  # here most keys are broken on purpose
        },
        "tally": {"projections": []},
        "canary": {"usual_delay": 60},
        "sweep": {"when_needed": False},  # what a test repairs is to come from its events
        "sample": {"one_in": 0},
        "metrics": {"port": 0, "canary_port": 0, "sweep_port": 0},
    }
    for each in (defaults, changes):
        for section, values in each.items():
            settings.setdefault(section, {}).update(values)
    path.write_text(as_toml(settings), encoding="utf-8")
    return path


def module(name: str) -> tuple[str, ...]:
    """The words that run a module of this environment."""
    return (sys.executable, "-m", name)


@dataclass
class Stream:
    """One stream, started and stopped as often as a test needs; same settings, same keyspace.

    ``environment`` reaches the process and Spark's Python workers; ``program`` is what is run.
    """

    config: Path
    mode: str = "repair"
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    program: tuple[str, ...] = module("streaming.app")
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _ended: dict[Path, int] = field(default_factory=dict, init=False)
    _logged: list[dict[str, Any]] = field(default_factory=list, init=False)
    _log_read: int = field(default=0, init=False)

    @property
    def log(self) -> Path:
        return self.config.with_suffix(".log")

    def start(self) -> "Stream":
        command = [*self.program, "stream", "--mode", self.mode]
        command += ["--config", str(self.config), *self.arguments]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **self.environment},
            )
        return self

    def start_watching(self) -> "Stream":
        """Start, and wait until the first batch has ended."""
        self.start().wait_until_watching()
        return self

    def wait_until_watching(self) -> None:
        """Until the first batch of this start has ended."""
        ended = self.batches()
        until(
            "the stream ended a batch",
            lambda: self._alive() and self.batches() > ended,
        )

    def batches(self) -> int:
        """How many batches have ended, over all queries seen (counted in Spark's commit logs)."""
        for commit in self.checkpoint.glob("query-*/commits/*"):
            if commit.name.isdigit():
                folder = commit.parent
                self._ended[folder] = max(self._ended.get(folder, 0), int(commit.name) + 1)
        return sum(self._ended.values())

    def read_up_to(self) -> dict[str, dict[str, int]]:
        """The offsets up to which Spark has read, by its newest batch that ended."""
        plans = {
            int(each.name): each
            for each in self.checkpoint.glob("query-*/offsets/*")
            if each.name.isdigit() and (each.parents[1] / "commits" / each.name).exists()
        }
        if not plans:
            return {}
        lines = plans[max(plans)].read_text(encoding="utf-8").splitlines()
        found: dict[str, dict[str, int]] = json.loads(lines[2])
        return found

    @property
    def checkpoint(self) -> Path:
        settings = tomllib.loads(self.config.read_text(encoding="utf-8"))
        keyspace = settings["cassandra"]["keyspace"]
        return Path(str(settings["stream"]["checkpoint_dir"])) / str(keyspace) / self.mode

    @property
    def session(self) -> int:
        """The number that all of its processes have in common."""
        assert self._process is not None
        return self._process.pid

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(timeout=PATIENCE)
        self._sweep_up()
        return code

    def kill(self) -> None:
        """kill -9 of the driver: the Python process, its JVM and its workers at once."""
        self._sweep_up()

    def _sweep_up(self) -> None:
        """Nothing of its process group stays."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=PATIENCE)
            self._process = None

    def died(self) -> int | None:
        """Its exit code once it has ended unexpectedly, None while it runs."""
        return self._process.poll() if self._process is not None else None

    def _alive(self) -> bool:
        if self.died() is not None:
            raise AssertionError(f"the stream died:\n{self.log.read_text()[-3000:]}")
        return True

    def lines(self) -> list[dict[str, Any]]:
        """What it logged, as the JSON objects it logs; each line is read once."""
        if self.log.exists():
            with self.log.open("rb") as log:
                log.seek(self._log_read)
                whole, end, _ = log.read().rpartition(b"\n")
            self._log_read += len(whole) + len(end)
            lines = (each.decode(errors="replace") for each in whole.splitlines())
            self._logged += [json.loads(line) for line in lines if line.startswith("{")]
        return self._logged

    def said(self, text: str) -> list[dict[str, Any]]:
        """The log lines whose message has this text."""
        return [line for line in self.lines() if text in str(line["message"])]

    def findings(self, **facts: Any) -> list[dict[str, Any]]:
        """Findings logged with these facts (mailboxid, uid, kind, state, …), in order."""
        wanted = {name: str(value) for name, value in facts.items()}
        return [
            line["finding"] | {"message": line["message"]}
            for line in self.lines()
            if "finding" in line
            if all(str(line["finding"].get(name)) == value for name, value in wanted.items())
        ]

    def __enter__(self) -> "Stream":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self._sweep_up()
