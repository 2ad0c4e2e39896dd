"""The command line: what is checked before a server is asked, and what `--help` costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reconcilers.words.exit_codes import ExitCode
from streaming import app
from streaming.commands.arguments.people import who_of

UNREACHABLE = 'cassandra.hosts = ["127.0.0.1"]\ncassandra.port = 1\nkafka.bootstrap_servers = "x:1"'
A_DAY, THE_DAY_AFTER = "2026-01-01T00:00:00", "2026-01-02T00:00:00"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["sweep", "--systems", "mesages"], "did you mean messages?"),
        (["sweep", "--rate", "0"], "is not a whole number above 0"),
        (["pause", "--until", A_DAY], "the time of --until is over"),
        (["pilot", "--for", "2h"], "name what is to be repaired until then"),
        (["pilot", "--end", "--user", "bob"], "--end ends the whole pilot"),
        (["resume", "--pause", "all", "--own-keyspace"], "--own-keyspace ends no pause"),
        (["replay", "--from-time", THE_DAY_AFTER, "--to-time", A_DAY], "nothing lies between"),
        (["replay", "--from-time", A_DAY, "--to-time", A_DAY], "nothing lies between"),
        (["explain", "bob", "7"], "'bob' is no mailbox id"),
        (["explain", "bob", "--days", "-1"], "is not a whole number above 0"),
        (["findings", "--limit", "-1"], "is not a whole number above 0"),
        (["findings", "--user", "bob", "--accept"], "name what to decide"),
        (["findings", "--user", "bob", "--undo", "--all", "--log"], "--log only lists"),
        (["doctor", "--admin-username", "admin"], "belong together"),
        (["mailboxes", "--fix"], "mailboxes.right is none"),
        (["mailboxes", "--dry-run"], "are for --fix"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else each,
)
def test_arguments_are_checked_before_a_server_is_asked(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No server answers there: asking one would end with another code."""
    config = tmp_path / "reconcile.toml"
    config.write_text(UNREACHABLE)
    try:
        code = app.main([*words, "--config", str(config)])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("reconcile")
    assert told in line


@pytest.mark.parametrize("words", [["status"], ["findings", "--limit", "1"]], ids=" ".join)
def test_settings_are_named_before_or_after_the_command_or_in_the_environment(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tmp_path / "status"  # the name of a command, too
    config.write_text("[stream]\ndelay = 0\nwidow = 1")
    given = ["--config", str(config)]

    def told(words: list[str]) -> list[str]:
        assert app.main(words) == ExitCode.USAGE
        return capsys.readouterr().err.splitlines()

    monkeypatch.chdir(tmp_path)
    lines = told([*given, *words])
    assert lines == [
        f"reconcile: {config}: [stream] delay is 0, and must be: seconds, > 0",
        f"reconcile: {config}: [stream] widow is no setting: did you mean window?",
    ]
    assert told([*words, *given]) == lines
    assert told(["--config", "elsewhere.toml", *words, *given]) == lines
    assert len(told(["--config", "status", *words])) == 2
    monkeypatch.setenv("RECONCILE_CONFIG", str(config))
    assert told(words) == lines


def test_who_asks_may_have_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenShift runs containers under such user ids, and a pause must never need a name."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2_000_123_456)
    assert who_of(app.parsed(["pause"])) == "uid 2000123456"
    assert who_of(app.parsed(["pause", "--who", "alice"])) == "alice"


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["pause", "--help"]], ids=" ".join)
def test_help_imports_no_command_that_was_not_asked_for(words: list[str]) -> None:
    code = (
        "import sys\nfrom streaming import app\ntry:\n    app.main(sys.argv[1:])\n"
        "finally:\n    print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    imported = {*done.stdout.splitlines()[-1].split()}
    commands = {each for each in imported if each.startswith("streaming.commands.")}
    assert not {"pyspark", "kafka"} & imported
    if words[0] == "pause":
        assert "streaming.commands.person.pause" in commands
    else:
        assert not {"pydantic", "cassandra"} & imported
        assert commands == {"streaming.commands.running", "streaming.commands.running.signals"}
