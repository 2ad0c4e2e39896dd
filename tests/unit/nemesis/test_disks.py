"""Small disks: where they are, and what is done after they were full."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deploy.embedded.errors import StartError
from deploy.embedded.layout import Layout
from deploy.nemesis.disks import full_disks, small_disks
from deploy.nemesis.schedule import FaultChoice, InjectedFault


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def stack(tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in of a stack; mount is one, too: both note what they are told."""
    for name in ("mount", "umount"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/mounted\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    note = told.append
    node = SimpleNamespace(
        place=SimpleNamespace(number=3, host="127.0.0.3"),
        kill=lambda: note("kill"),
        start=lambda: note("start"),
    )
    return SimpleNamespace(
        layout=Layout(tmp_path),
        nodes=[None, None, node],
        kill_kafka=lambda: note("kill Kafka"),
        start_kafka=lambda: note("start Kafka"),
    )


def mounted(tmp_path: Path) -> list[str]:
    return (tmp_path / "mounted").read_text().splitlines()


def test_the_last_nodes_disk_and_the_brokers_are_small(stack: Any, tmp_path: Path) -> None:
    made = [
        f"-t tmpfs -o size=4g tmpfs {tmp_path}/node-3/cassandra",
        f"-t tmpfs -o size=4g tmpfs {tmp_path}/kafka/data",
    ]
    with small_disks(stack):
        assert mounted(tmp_path) == made
    gone = [f"--lazy {tmp_path}/kafka/data", f"--lazy {tmp_path}/node-3/cassandra"]
    assert mounted(tmp_path) == [*made, *gone]


NODE = FaultChoice(InjectedFault.NODE_DISK, "127.0.0.3", "cluster")
BROKER = FaultChoice(InjectedFault.BROKER_DISK, "broker", "broker")


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (NODE, ("node-3/cassandra", ["kill", "start"])),
        (BROKER, ("kafka/data", ["kill Kafka", "start Kafka"])),
    ],
)
def test_a_disk_shrinks_to_what_is_used_and_gets_its_size_back(
    stack: Any,
    tmp_path: Path,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
    choice: FaultChoice,
    wanted: tuple[str, list[str]],
) -> None:
    folder, started = wanted
    used = SimpleNamespace(f_blocks=100, f_bfree=98, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: used)
    injector = dict(full_disks(stack))[choice]
    injector.inject()
    assert told == []
    injector.heal()
    place = tmp_path / folder
    assert mounted(tmp_path) == [f"-o remount,size=8192 {place}", f"-o remount,size=4g {place}"]
    assert told == started


def test_what_was_written_while_a_disk_was_measured_makes_it_measured_again(
    stack: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As tmpfs does: a size below what is used by then is refused."""
    looks = iter([SimpleNamespace(f_blocks=100, f_bfree=free, f_frsize=4096) for free in (98, 97)])
    monkeypatch.setattr(os, "statvfs", lambda _: next(looks))
    written = 3 * 4096
    (tmp_path / "mount").write_text(
        f"#!/bin/sh\n[ $2 = remount,size={written} ] || {{ echo bad option >&2; exit 32; }}\n"
        f'echo "$*" >> {tmp_path}/mounted\n'
    )
    dict(full_disks(stack))[NODE].inject()
    disk = tmp_path / "node-3" / "cassandra"
    assert mounted(tmp_path) == [f"-o remount,size={written} {disk}"]


def test_a_disk_that_cannot_shrink_is_one_line(
    stack: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = SimpleNamespace(f_blocks=100, f_bfree=98, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: used)
    (tmp_path / "mount").write_text("#!/bin/sh\necho bad option >&2\nexit 32\n")
    with pytest.raises(StartError, match=r"remount,size=8192 .*: bad option$"):
        dict(full_disks(stack))[NODE].inject()


def test_mount_that_fails_is_one_line(stack: Any, tmp_path: Path) -> None:
    (tmp_path / "mount").write_text("#!/bin/sh\necho mount: no such device >&2\nexit 32\n")
    failed = pytest.raises(StartError, match=r"mount -t tmpfs .*: mount: no such device$")
    with failed, small_disks(stack):
        pass
