"""Spark in a command that a signal ends: its own lines, its handlers, its processes."""

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = """
    import sys
    from streaming.again import workers
    from streaming.again.scan import Scanning
    from streaming.again.sweep import Interrupted
    from streaming.commands.running.signals import Signalled, stopped_by_signals
    from streaming.commands.wiring.hand_over import wait_unless
    from streaming.monitoring import logs
    from streaming.pipeline.session import spark_session
    from streaming.pipeline.worker import Job
    from streaming.settings import load

    def slow(values):
        import time
        for each in values:
            time.sleep(0.1)
            yield each

    logs.configure()
    stop = stopped_by_signals()
    places = {"CHECKPOINT_DIR": sys.argv[1], "JARS": ".jars/spark"}
    settings = load(None, {f"RECONCILE_STREAM__{name}": each for name, each in places.items()})
    workers.sweep_task = lambda _: slow
    job = Job(settings, None, "", None, None)
    scans = workers.on_one_host(Scanning(job, None, None, None, None))
    scan = workers.on_workers(spark_session(settings), scans, workers.beside_a_stream)
    print("here", flush=True)
    try:
        with stop.first(""):
            while True:
                scan(range(40))
                wait_unless(stop, 0)
    except (Interrupted, Signalled):
        sys.exit(stop.ended("").exit_code)
"""
"""A command that has Spark do something until it is stopped, as a sweep does."""


@pytest.fixture
def command(quick_spark: None, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """It runs, in a process group of its own; Spark works for it."""
    script = tmp_path / "command.py"
    script.write_text(textwrap.dedent(COMMAND), encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as begun:
        assert begun.stdout is not None
        assert begun.stdout.readline() == "here\n", begun.communicate()[1]
        yield begun
        begun.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["process", "group"])
def test_a_signal_stops_it_without_a_line_of_sparks(
    command: subprocess.Popen[str], number: signal.Signals, send: object
) -> None:
    """A terminal and systemd signal the whole group: Spark's workers end with the command."""
    assert callable(send)
    send(command.pid, number)
    assert command.communicate() == ("", "")
    assert command.returncode == 128 + number
