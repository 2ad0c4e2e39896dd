"""The program that tests alert rules: where it is found, and what a failed download leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy import promtool

APT = 'touch "prometheus_2.42.0_amd64.deb"'
DPKG = 'mkdir -p "$3/usr/bin"; echo it > "$3/usr/bin/promtool"'


def program(folder: Path, name: str, script: str) -> Path:
    made = folder / name
    made.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n", encoding="utf-8")
    made.chmod(0o755)
    return made


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_one_on_the_path_is_preferred_to_the_fetched_one(path: Path, tmp_path: Path) -> None:
    fetched = tmp_path / "promtool"
    assert promtool.found(fetched) is None
    fetched.touch()
    assert promtool.found(fetched) == fetched
    installed = program(path, "promtool", "true")
    assert promtool.found(fetched) == installed


def test_it_is_taken_out_of_debians_package(path: Path, tmp_path: Path) -> None:
    program(path, "apt-get", f'[ "$*" = "download prometheus" ] && {APT}')
    program(path, "dpkg-deb", DPKG)
    fetched = tmp_path / "jars" / "promtool"
    assert promtool.fetch(fetched) is None
    assert fetched.read_text("utf-8") == "it\n"
    assert list(fetched.parent.iterdir()) == [fetched]


@pytest.mark.parametrize(
    ("apt", "dpkg", "why"),
    [
        (None, None, "No such file or directory: 'apt-get'"),
        ("echo 'E: Unable to locate package' >&2; exit 100", DPKG, "Unable to locate package"),
        ("true", DPKG, "not enough values"),
        (APT, "echo 'not an archive' >&2; exit 2", "not an archive"),
        (APT, "true", "promtool"),
    ],
    ids=["no apt", "no such package", "nothing came", "a broken package", "without the program"],
)
def test_a_failed_download_leaves_nothing_and_says_why(
    path: Path, tmp_path: Path, apt: str | None, dpkg: str | None, why: str
) -> None:
    for name, script in (("apt-get", apt), ("dpkg-deb", dpkg)):
        if script is not None:
            program(path, name, script)
    fetched = tmp_path / "jars" / "promtool"
    assert why in str(promtool.fetch(fetched))
    assert list(fetched.parent.iterdir()) == []
