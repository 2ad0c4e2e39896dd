"""``reconcile config``: the settings with their sources, and an example of a file."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import pytest

from reconcilers.words.exit_codes import ExitCode
from streaming import app
from streaming.settings import Settings, example, load
from streaming.settings.given import every_setting

SECRET = "correct horse battery"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file with secrets, and a variable."""
    path = tmp_path / "reconcile.toml"
    path.write_text(
        f'[cassandra]\nport = 9999\npassword = "{SECRET}"\njmx_port = 1\n'
        f'[spark]\n"spark.authenticate.secret" = "{SECRET}"\n"spark.ui.enabled" = true\n'
    )
    monkeypatch.setenv("RECONCILE_CASSANDRA__JMX_PORT", "7200")
    monkeypatch.setenv("RECONCILE_CASSANDRA__JMX_PASSWORD", SECRET)
    monkeypatch.setenv("RECONCILE_CONFIG", str(path))
    return path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert app.main(["config", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_each_setting_is_shown_with_its_value_and_source(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(printed(capsys, "show", "--format", "json"))
    shown = {each["setting"]: (each["value"], each["source"], each["place"]) for each in told}
    assert len(shown) == len([*every_setting()]) + 2
    assert shown["cassandra.port"] == ("9999", "file", str(file))
    variable = "RECONCILE_CASSANDRA__JMX_PORT"
    assert shown["cassandra.jmx_port"] == ("7200", "environment", variable)
    assert shown["cassandra.hosts"] == ('["127.0.0.1"]', "default", "")
    assert shown["cassandra.username"] == ("not set", "default", "")
    assert shown["kafka.group"] == ('"reconciler.apache_james"', "default", "")
    assert shown["spark: spark.ui.enabled"] == ('"true"', "file", str(file))


@pytest.mark.parametrize("form", ["table", "json", "jsonl", "csv"])
def test_of_a_secret_only_is_shown_whether_it_is_set(
    form: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = printed(capsys, "show", "--format", form)
    assert SECRET not in out
    secrets = [line for line in out.splitlines() if "set, not shown" in line]
    names = ("cassandra.password", "cassandra.jmx_password", "spark.authenticate.secret")
    assert len(secrets) == len(names)
    assert all(name in line for name, line in zip(names, secrets, strict=True))


def test_all_forms_have_the_same_rows(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(printed(capsys, "show", "--format", "json"))
    lines = printed(capsys, "show", "--format", "jsonl").splitlines()
    assert [json.loads(line) for line in lines] == rows
    table = csv.DictReader(printed(capsys, "show", "--format", "csv").splitlines())
    assert [*table] == rows
    assert len(printed(capsys, "show").splitlines()) == len(rows) + 1


def test_settings_that_a_stream_refuses_are_found(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert printed(capsys, "check") == f"{file}: nothing is wrong\n"
    monkeypatch.setenv("RECONCILE_STREAM__DELAY", "10")
    monkeypatch.setenv("RECONCILE_REPAIR__ATTEMPTS", "11")
    assert printed(capsys, "check") == f"{file}: nothing is wrong\n"
    assert app.main(["config", "check", "--mode", "repair"]) == ExitCode.USAGE
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert any("stream.delay is 10, not 35 s or more" in line for line in lines)
    assert any("repair.attempts is 11, not 10 or less" in line for line in lines)
    file.write_text("[stream]\ndelay = 0\nwidow = 1\n")
    monkeypatch.delenv("RECONCILE_STREAM__DELAY")
    assert app.main(["config", "check"]) == ExitCode.USAGE
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_the_example_has_each_setting_with_its_default(tmp_path: Path) -> None:
    lines = [*example()]
    used = tmp_path / "used.toml"
    used.write_text("\n".join(lines))
    assert load(used, {}) == Settings()
    plain = [
        line.removeprefix("#")
        for line in lines
        if not line.startswith("# ") and not line.endswith("=") and "spark." not in line
    ]
    values = tomllib.loads("\n".join(plain))
    without = {(section, name) for section, name, told in every_setting() if told.default is None}
    names = {(section, name) for section, name, _ in every_setting()}
    assert {(section, name) for section in values for name in values[section]} == names - without
    assert all(f"#{name} =" in lines for _, name in without)
    used.write_text("\n".join(plain))
    assert load(used, {}) == Settings()
    assert max(map(len, lines)) <= 100


def test_an_example_is_printed_although_the_settings_are_wrong(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text("[cassandra")
    assert printed(capsys, "example") == "\n".join(example()) + "\n"
