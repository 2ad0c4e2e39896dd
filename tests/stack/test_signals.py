"""Commands with Spark that a signal ends: one line, the code of the signal, nothing left running.

A terminal and systemd signal the whole process group, Spark's JVM and its workers too.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from cassandra.cluster import Session

from deploy.mailserver.filler import fill
from tests.stack.conftest import Scenes
from tests.stack.scenes import Scene
from tests.stack.streams import until

pytestmark = pytest.mark.stack

RATE = 50
"""Rows a second: a sweep of the messages takes minutes."""
PROGRESS = " ranges, "
"""In the lines that a sweep writes while it runs."""
Send = Callable[[int, int], None]


@pytest.fixture(scope="module")
def scene(scenes: Scenes, cassandra: Session) -> Iterator[Scene]:
    for made in scenes({"sweep": {"ranges": 64}}):
        fill(cassandra, made.keyspace, 4_000, 20)
        yield made


def begun(scene: Scene, *words: str) -> subprocess.Popen[str]:
    """A command in a process group of its own, without a home, in a folder where none can write."""
    return subprocess.Popen(
        [sys.executable, "-m", "streaming.app", *words, "--config", str(scene.stream.config)],
        cwd="/proc",
        env={**os.environ, "HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def running(group: int, name: str = "") -> list[str]:
    """The command lines of a session's processes that have this name."""
    shown = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-s", str(group)], capture_output=True, text=True, check=False
    )
    return [line for line in shown.stdout.splitlines() if name in line.partition(" ")[0]]


def ended(command: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """The exit code, what is not a line of the log, and what the command printed."""
    printed, told = command.communicate()
    until("nothing of it runs", lambda: not running(command.pid))
    lines = [x for x in told.splitlines() if not x.startswith("{") and PROGRESS not in x]
    return command.returncode, lines, printed


def says(command: subprocess.Popen[str], word: str) -> None:
    """Wait until its standard error has this word."""
    assert command.stderr is not None
    assert any(word in line for line in command.stderr), "it ended without it"


@pytest.mark.parametrize(
    ("send", "number"),
    [
        pytest.param(os.killpg, signal.SIGTERM, id="all of systemd"),
        pytest.param(os.killpg, signal.SIGINT, id="Ctrl-C"),
        pytest.param(os.kill, signal.SIGTERM, id="itself", marks=pytest.mark.long(part="commands")),
    ],
)
def test_a_sweep_says_how_to_go_on(scene: Scene, send: Send, number: signal.Signals) -> None:
    command = begun(scene, "sweep", "--rate", str(RATE))
    says(command, PROGRESS)
    send(command.pid, number)
    code, lines, _ = ended(command)
    assert code == 128 + number, lines
    assert lines == [
        f"reconcile: ended by {number.name}: `reconcile sweep --resume` continues what it has begun"
    ]


@pytest.mark.long(part="commands")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "words", [("sweep",), ("replay", "--from-time", "2026-01-01", "--dry-run")]
)
def test_a_command_whose_spark_only_starts(
    scene: Scene, words: tuple[str, ...], number: signal.Signals
) -> None:
    command = begun(scene, *words)
    until("its JVM runs", partial(running, command.pid, "java"))
    os.killpg(command.pid, number)
    code, lines, _ = ended(command)
    assert code == 128 + number, lines
    assert [line for line in lines if line.startswith("reconcile: ")] == lines[-1:], lines
    assert "Traceback" not in "".join(lines)


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long(part="commands"))],
)
def test_a_stream_ends_well(scene: Scene, number: signal.Signals) -> None:
    command = begun(scene, "stream", "--mode", "observe")
    says(command, "watching")
    until("its workers run", partial(running, command.pid, "java"))
    os.killpg(command.pid, number)
    assert ended(command)[:2] == (0, [])
