"""What a command prints: to a reader that has gone, and to a terminal without UTF-8."""

import subprocess
import sys

import pytest

from reconcilers.words.errors import Misconfigured
from reconcilers.words.exit_codes import ExitCode
from streaming import app
from streaming.commands.look import status

STEERS = "\x1b]0;title\x07\x1b[2J\r\x9b1m\u202e"
"""Sets the title of a terminal, clears it, goes back in the line, changes the direction."""
MANY = """
import sys
from streaming import app
from streaming.commands.look import status

status.run = lambda *_: print("–…\\n" * {lines}) or 0
sys.exit(app.main(["status"]))
"""


def many(lines: int, *, read: bool, encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    """Prints so many lines; read, or to a pipe that is closed at once."""
    told = [
        sys.executable,
        "-X",
        f"utf8={int(encoding == 'utf-8')}",
        "-c",
        MANY.format(lines=lines),
    ]
    process = subprocess.Popen(
        told,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONIOENCODING": encoding, "PYTHONPATH": ":".join(sys.path)},
    )
    assert process.stdout is not None
    if not read:
        process.stdout.close()
        process.stdout = None
    out, error = process.communicate(timeout=120)
    return subprocess.CompletedProcess(told, process.returncode, out, error)


def test_a_reader_that_has_gone_is_no_error_of_ours() -> None:
    ended = many(100_000, read=False)
    assert (ended.returncode, ended.stderr) == (ExitCode.NOBODY_READS, b"")


def test_a_terminal_without_our_characters_shows_others() -> None:
    ended = many(1, read=True, encoding="ascii")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout == b"??\n\n"


def test_what_users_have_typed_does_not_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shows(*_: object) -> int:
        print(f"pause of {STEERS}ana\ta reason")
        raise Misconfigured(f"no mailbox of {STEERS}ana")

    monkeypatch.setattr(status, "run", shows)
    assert app.main(["status"]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    escaped = r"\x1b]0;title\x07\x1b[2J\x0d\x9b1m\u202eana"
    assert out == f"pause of {escaped}\ta reason\n"
    assert err.endswith("ana\n")
    assert err.strip().isprintable()
