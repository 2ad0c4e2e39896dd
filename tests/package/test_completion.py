"""What the shells complete: commands, options and their values."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming import app

Completed = Callable[[str], list[str]]
ASK = """
source "$1"
COMP_WORDS=($2 "$3")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_shtab_reconcile
printf '%s\\n' "${COMPREPLY[@]}"
"""


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert app.main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.fixture
def completed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Completed:
    """What bash offers where a line ends, the last word of which has begun."""
    file = tmp_path / "completion"
    file.write_text(script("bash", capsys), encoding="utf-8")

    def ask(line: str) -> list[str]:
        before, _, last = line.rpartition(" ")
        words = ["bash", "-c", ASK, "bash", str(file), before, last]
        done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout.split()

    return ask


def test_bash_completes_commands(completed: Completed) -> None:
    assert set(completed("reconcile ")) >= set(app.COMMANDS)
    assert completed("reconcile sw") == ["sweep"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("reconcile stream --mode ", ["observe", "repair"]),
        ("reconcile stream --events", ["--events-lost"]),
        ("reconcile jars --l", ["--list"]),
        ("reconcile findings --format js", ["json", "jsonl"]),
        ("reconcile --config comp", ["completion"]),
        ("reconcile status --config comp", ["completion"]),
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_bash_completes_options_values_and_files(
    completed: Completed, line: str, offered: list[str]
) -> None:
    assert completed(line) == offered


def test_zsh_reads_its_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = script("zsh", capsys)
    assert told.startswith("#compdef reconcile\n")
    assert all(f"reconcile_{name.replace('-', '_')}" in told for name in app.COMMANDS)
    shell = shutil.which("zsh")
    if shell is not None:
        (tmp_path / "_reconcile").write_text(told, encoding="utf-8")
        subprocess.run([shell, "-n", str(tmp_path / "_reconcile")], check=True)


def test_a_broken_settings_file_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECONCILE_CONFIG", str(tmp_path / "not there"))
    assert "reconcile" in script("bash", capsys)
