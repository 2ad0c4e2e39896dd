"""A run of tests that is ended by SIGTERM takes its servers with it, whenever it comes."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.embedded import Stack
from tests.conftest import RUNNING_STACK
from tests.stack.embedded import processes_of
from tests.stack.streams import PATIENCE, until

pytestmark = pytest.mark.stack

ROOT = Path(__file__).resolve().parents[2]
HELD = Path(__file__).with_name("held_run.py")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != RUNNING_STACK}


@dataclass(frozen=True)
class Run:
    """Another pytest, with servers of its own below `base`."""

    process: subprocess.Popen[bytes]
    base: Path
    log: Path

    def has(self, name: str) -> bool:
        """Whether a file of that name is there by now. Fails where the run has ended."""
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
        return any(self.base.glob(name))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    base, log = tmp_path / "run", tmp_path / "run.log"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(HELD)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--stack=embedded", f"--basetemp={base}"],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield Run(process, base, log)
    finally:
        process.kill()
        process.wait()
        for data in base.glob("stack*"):
            Stack.existing(data).down()


@pytest.mark.parametrize(
    ("seen", "signals"),
    [
        ("stack*/run/cassandra.pid", 2),
        pytest.param("up", 1, marks=pytest.mark.long(part="servers")),
    ],
    ids=["twice, while it starts", "once, in a test"],
)
def test_no_server_outlives_a_run_that_is_ended(run: Run, seen: str, signals: int) -> None:
    until("the run is that far", lambda: run.has(seen))
    for _ in range(signals):
        run.process.send_signal(signal.SIGTERM)
    code = run.process.wait(timeout=PATIENCE)
    assert processes_of(run.base) == []
    assert code == pytest.ExitCode.INTERRUPTED, run.log.read_text(encoding="utf-8")
