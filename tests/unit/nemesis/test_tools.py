"""Programs for faults: fetched once, or one line that says what is missing."""

import os
from pathlib import Path

import pytest

from deploy.embedded import jars
from deploy.embedded.errors import FetchError, MismatchError, MissingToolError
from deploy.nemesis import __main__ as command_line
from deploy.nemesis import hosts, tools

FETCHED = 'touch "$(for last; do :; done; echo "$last")_1.deb"'
UNPACKED = 'mkdir -p "$3/usr/lib/x86_64-linux-gnu"; echo "$2" >> "$3/unpacked"'


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins for Debian's programs, which are all that is on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in tools.NEEDED:
        stand_in(folder, name, "exit 9")
    stand_in(folder, "apt-get", FETCHED)
    stand_in(folder, "dpkg-deb", UNPACKED)
    monkeypatch.setattr(tools, "JARS", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def stand_in(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_packages_are_unpacked_once(programs: Path, tmp_path: Path) -> None:
    tools.fetch(tmp_path / "debian")
    assert (tmp_path / "debian" / "unpacked").read_text().split()
    stand_in(programs, "apt-get", "exit 1")
    tools.fetch(tmp_path / "debian")


def test_a_failed_download_is_one_line_and_leaves_nothing(programs: Path, tmp_path: Path) -> None:
    stand_in(programs, "apt-get", "echo first >&2; echo E: no route >&2; exit 100")
    with pytest.raises(FetchError, match=r"apt-get could not fetch .*libfaketime: E: no route$"):
        tools.fetch(tmp_path / "debian")
    assert not (tmp_path / "debian").exists()


def test_what_is_missing_is_named(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (programs / "apt-get").unlink()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(MissingToolError, match=r"^apt-get not found"):
        tools.fetch(tmp_path / "debian")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MissingToolError, match="need root"):
        tools.fetch(tmp_path / "debian")


def test_iptables_that_fails_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    (tmp_path / "usr/sbin").mkdir()
    stand_in(
        tmp_path / "usr/sbin", "xtables-legacy-multi", 'echo "$*: $XTABLES_LIBDIR" >&2; exit 3'
    )
    with pytest.raises(MissingToolError, match=r"iptables -N X: iptables -w -N X: .*/xtables"):
        tools.iptables("-N", "X", folder=tmp_path)


def test_a_run_goes_on_in_namespaces_of_its_own(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(programs, "unshare", "exit 0")
    monkeypatch.setenv(hosts.OUTSIDE, os.readlink("/proc/self/ns/net"))
    ran: list[list[str]] = []
    monkeypatch.setattr(tools, "fetch", lambda: None)
    monkeypatch.setattr(jars, "fetch", lambda: None)
    monkeypatch.setattr(os, "execvp", lambda _, words: ran.append(words))
    command_line.main(["--seed", "3"])
    [words] = ran
    assert words[:3] == ["unshare", "--net", "--mount"]
    assert words[-4:] == ["-m", "deploy.nemesis", "--seed", "3"]
    assert os.environ[hosts.OUTSIDE] == os.readlink("/proc/self/ns/net")


def test_outside_a_network_of_its_own_nothing_is_injected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules: list[tuple[str, ...]] = []
    monkeypatch.setattr(tools, "iptables", lambda *words: rules.append(words))
    monkeypatch.setenv(hosts.OUTSIDE, os.readlink("/proc/self/ns/net"))
    with pytest.raises(MismatchError, match="use make nemesis"):
        hosts.make_hosts(None)  # type: ignore[arg-type]
    assert rules == []


def test_where_namespaces_cannot_be_made_there_is_no_run(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(programs, "unshare", "echo unshare: not permitted >&2; exit 1")
    monkeypatch.setattr(os, "execvp", lambda *_: pytest.fail("it went on"))
    with pytest.raises(MissingToolError, match="cannot be made: unshare: not permitted"):
        hosts.enter([])


def test_without_root_there_is_no_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jars, "fetch", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert command_line.main([]) == 2
    assert capsys.readouterr().err == (
        "nemesis: the run could not be made: cuts of connections need root: run it as root\n"
    )
