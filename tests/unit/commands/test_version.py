"""`reconcile --version` tells what is installed, else what the sources say."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from streaming import app
from streaming.monitoring import version

PROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"


@pytest.fixture
def declared() -> str:
    return str(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"])


def test_it_tells_the_installed_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metadata, "version", {"james-reconciler": "7.8.9"}.__getitem__)
    with pytest.raises(SystemExit) as ended:
        app.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "reconcile 7.8.9\n"


def test_without_an_installation_it_tells_that_of_the_sources(
    monkeypatch: pytest.MonkeyPatch, declared: str
) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    assert version.version() == declared


def test_the_package_is_called_as_it_is_declared() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    assert project["name"] == version.PACKAGE


def test_the_sources_are_of_the_version_that_the_changelog_describes(declared: str) -> None:
    changelog = PROJECT.with_name("CHANGELOG.md").read_text(encoding="utf-8")
    assert f"({declared})" in changelog or f"## [{declared}]" in changelog
