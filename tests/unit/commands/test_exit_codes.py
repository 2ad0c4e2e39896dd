"""Each error ends a command with the code of its class, and docs/exit-codes.md says the same."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from reconcilers.words.errors import ReconcilerError, Refused
from reconcilers.words.exit_codes import MEANINGS, ExitCode
from streaming import app
from streaming.commands.look import status
from streaming.commands.running.signals import Signalled, Stop, stopped_by_signals

ROOT = Path(__file__).resolve().parents[3]
CODES = {
    "ReconcilerError": 70,
    "Retryable": 4,
    "Unreachable": 4,
    "Rejected": 3,
    "Overloaded": 4,
    "ReadFailed": 4,
    "MalformedContent": 4,
    "Refused": 3,
    "Unreadable": 3,
    "Deferred": 70,
    "Soon": 70,
    "Unfinished": 70,
    "NotGuarded": 70,
    "EndedItself": 5,
    "SparkDied": 5,
    "Misconfigured": 2,
    "WrongSettings": 2,
    "OtherSchema": 3,
    "EventsLost": 3,
    "NotOffline": 3,
    "AlreadyRunning": 3,
}
ENDS = """
import signal
import sys
from streaming import app
from streaming.commands.look import status

signal.signal(signal.SIGINT, signal.default_int_handler)  # of a run in the background it is ignored

def run(settings, arguments):
    {body}

status.run = run
sys.exit(app.main(["status"]))
"""


def errors(of: type[ReconcilerError] = ReconcilerError) -> Iterator[type[ReconcilerError]]:
    yield of
    for each in of.__subclasses__():
        yield from errors(each)


def started(body: str) -> subprocess.Popen[str]:
    """A command that does this."""
    return subprocess.Popen(
        [sys.executable, "-c", ENDS.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )


def ended(command: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Its exit code, and the lines on standard error."""
    _, told = command.communicate(timeout=120)
    return command.returncode, told.splitlines()


def test_every_error_has_a_code() -> None:
    ours = {each for each in errors() if each.__module__.split(".")[0] != "tests"}
    assert {each.__name__: int(each.exit_code) for each in ours} == CODES


@pytest.mark.parametrize("error", sorted({*errors()}, key=str))
def test_a_command_ends_with_the_code_of_its_error(
    error: type[ReconcilerError],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fails(*_: object) -> int:
        raise error("a first line\nand a second")

    monkeypatch.setattr(status, "run", fails)
    assert app.main(["status"]) == error.exit_code
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("reconcile: ")
    assert "a first line" in line
    assert "and a second" in line


def test_what_nobody_expected_is_one_line_and_a_traceback_in_the_log() -> None:
    code, (logged, line) = ended(started("return {}['gone']"))
    assert code == 70
    assert line == (
        "reconcile: a defect of the reconciler: KeyError('gone'); the log has its traceback"
    )
    told = json.loads(logged)
    assert (told["level"], told["logger"]) == ("critical", "reconciler")
    assert "in run" in told["traceback"]
    assert "KeyError: 'gone'" in told["traceback"]


def test_an_error_of_ours_that_should_have_been_handled_is_a_defect_too() -> None:
    raised = "from reconcilers.words.errors import Soon; raise Soon('later')"
    code, (logged, line) = ended(started(raised))
    assert (code, "why='later'" in line) == (70, True)
    assert "in run" in json.loads(logged)["traceback"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_command_that_is_done_once(number: signal.Signals) -> None:
    waits = "print('here', flush=True); __import__('time').sleep(600)"
    command = started(f"""
    try:
        {waits}
    finally:
        print('closed', flush=True)
""")
    assert command.stdout is not None
    assert command.stdout.readline() == "here\n"
    command.send_signal(number)
    out, told = command.communicate(timeout=120)
    assert (command.returncode, out) == (128 + number, "closed\n")
    assert told == f"reconcile: ended by {number.name}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_that_stops_by_itself_knows_which_signal_asked(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    try:
        stop = stopped_by_signals()
        os.kill(os.getpid(), number)
        assert stop.wait(60)
        ended = stop.ended("begin again")
        assert ended.exit_code == 128 + number
        assert str(ended) == f"ended by {number.name}: begin again"
    finally:
        for each, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(each, handler)


def test_an_error_that_comes_with_a_signal_is_the_signals() -> None:
    """It reached Java or Spark as well, as part of the process group."""
    stop = Stop()
    stop.number = signal.SIGTERM
    stop.set()
    told = pytest.raises(Signalled, match="ended by SIGTERM: begin again")
    with told as ended, stop.first("begin again"):
        raise Refused("no Java")
    assert ended.value.exit_code == ExitCode.TERMINATED


def test_a_command_runs_in_a_thread_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where signals cannot be taken."""
    ran = Event()

    def refused(*_: object) -> int:
        ran.set()
        raise Refused("no")

    monkeypatch.setattr(status, "run", refused)
    thread = Thread(target=app.main, args=(["status"],))
    thread.start()
    thread.join()
    assert ran.is_set()


def test_the_page_and_the_help_list_every_code(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*?) \|", page, re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == dict(MEANINGS)
    with pytest.raises(SystemExit):
        app.main(["--help"])
    told = capsys.readouterr().out
    assert all(re.search(rf"^  {code} +{meaning}$", told, re.MULTILINE) for code, meaning in rows)
    assert "docs/exit-codes.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_wrong_argument_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        app.main(["status", "--nonsense"])
    assert refused.value.code == ExitCode.USAGE
