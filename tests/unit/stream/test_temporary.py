"""Temporary files lie in a folder of the process's own, and a stream ends when it is removed."""

import errno
import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from reconcilers.words.errors import EndedItself, Misconfigured
from streaming.pipeline.temporary import SparksFolders, _made, temporary_folder
from streaming.settings import StreamSettings

HOLDS = """
import sys
from pathlib import Path
from streaming.pipeline.temporary import temporary_folder
from streaming.settings import StreamSettings

print(temporary_folder(StreamSettings(temp_dir=Path(sys.argv[1]))), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _a_new_process() -> Iterator[None]:
    _made.cache_clear()
    yield
    _made.cache_clear()


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"checkpoint_dir": "/a/b/"}, ("checkpoint_dir", "/a/b/temporary")),
        ({"checkpoint_dir": "file:///a/b"}, ("checkpoint_dir", "/a/b/temporary")),
        ({}, ("checkpoint_dir", "/var/lib/reconciler/checkpoint/temporary")),
        ({"checkpoint_dir": "hdfs://names/a"}, ("temp_dir", "/var/lib/reconciler/temporary")),
        ({"checkpoint_dir": "/a/b", "temp_dir": "/c"}, ("temp_dir", "/c")),
    ],
)
def test_it_is_below_the_checkpoint_unless_a_setting_names_it(
    settings: dict[str, str], where: tuple[str, str]
) -> None:
    named, folder = StreamSettings.model_validate(settings).temporary
    assert (named, str(folder)) == where


def test_a_process_makes_one(tmp_path: Path) -> None:
    settings = StreamSettings(checkpoint_dir=str(tmp_path / "not" / "yet"))
    made = temporary_folder(settings)
    assert made.is_dir()
    assert made.parent == (tmp_path / "not" / "yet" / "temporary").resolve()
    assert temporary_folder(settings) == made
    other = settings.model_copy(update={"shuffle_partitions": 7})
    assert temporary_folder(other) == made, "one for all families, whatever else they have set"


def test_threads_that_ask_at_the_same_time_get_the_same_one(tmp_path: Path) -> None:
    """Spark's clients would differ in the path of their login, and it refuses that."""
    settings, together = StreamSettings(checkpoint_dir=str(tmp_path)), Barrier(8)

    def ask(_number: int) -> Path:
        together.wait(60)
        return temporary_folder(settings)

    with ThreadPoolExecutor(8) as pool:
        assert len({*pool.map(ask, range(8))}) == 1
    assert len([*(tmp_path / "temporary").glob("process-*")]) == 1


def test_what_a_dead_process_has_left_is_removed_and_a_living_ones_is_not(tmp_path: Path) -> None:
    def holder() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDS, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    (dead, left), (lives, held) = holder(), holder()
    try:
        (left / "blockmgr-1").mkdir()
        dead.kill()
        dead.wait()
        made = temporary_folder(StreamSettings(temp_dir=tmp_path))
        assert sorted(tmp_path.glob("process-*")) == sorted([made, held])
    finally:
        lives.kill()
        lives.wait()


def test_what_another_host_has_made_is_left_though_its_locks_are_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "another-1")
    others = temporary_folder(StreamSettings(temp_dir=tmp_path))
    _made.cache_clear()
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    made = temporary_folder(StreamSettings(temp_dir=tmp_path))
    assert others.is_dir()
    _made.cache_clear()
    temporary_folder(StreamSettings(temp_dir=tmp_path))
    assert not made.exists()


def test_a_folder_of_nfs_where_only_a_file_open_for_writing_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(number: int, how: int) -> None:
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", flock)
    assert temporary_folder(StreamSettings(temp_dir=tmp_path)).is_dir()


@pytest.mark.parametrize("setting", ["checkpoint_dir", "temp_dir"])
def test_where_none_can_be_made_the_setting_is_named(tmp_path: Path, setting: str) -> None:
    (tmp_path / "a file").write_text("", encoding="utf-8")
    below = str(tmp_path / "a file" / "below")
    with pytest.raises(Misconfigured, match=rf"stream\.{setting} .*: Not a directory"):
        temporary_folder(StreamSettings.model_validate({setting: below}))


# --- removed under a running Spark


@pytest.fixture
def sparks(tmp_path: Path) -> Path:
    """As Spark makes them."""
    folder = tmp_path / "process-1"
    for each in ("blockmgr-1/0a", "spark-1", "spark-2/pyspark-1", "spark-2/userFiles-1", "sweep-1"):
        (folder / each).mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "removed",
    ["", "blockmgr-1", "blockmgr-1/0a", "spark-1", "spark-2/pyspark-1", "spark-2/userFiles-1"],
)
def test_whatever_spark_needs_is_missed(sparks: Path, removed: str) -> None:
    folders = SparksFolders(sparks)
    folders.check()
    folders.check()
    shutil.rmtree(sparks / removed)
    with pytest.raises(EndedItself, match=f"{sparks / removed}.* was removed"):
        folders.check()


def test_what_spark_has_made_since_is_missed_too(sparks: Path) -> None:
    folders = SparksFolders(sparks)
    folders.check()
    (sparks / "blockmgr-1" / "0b").mkdir()
    folders.check()
    shutil.rmtree(sparks / "blockmgr-1" / "0b")
    with pytest.raises(EndedItself):
        folders.check()


def test_files_and_other_folders_come_and_go(sparks: Path) -> None:
    folders = SparksFolders(sparks)
    (sparks / "blockmgr-1" / "0a" / "shuffle_0").write_text("", encoding="utf-8")
    folders.check()
    shutil.rmtree(sparks / "sweep-1")
    (sparks / "blockmgr-1" / "0a" / "shuffle_0").unlink()
    folders.check()
