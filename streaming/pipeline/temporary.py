"""The folder of a process's temporary files: Spark's, PySpark's, a sweep's.

It is not in /tmp, which systems clean while a stream runs. It is made when Spark starts, below the
folder that the settings name. The next process of this host that makes one there removes it: a
process that is killed removes nothing. Of another host's folder, where several share the place,
nobody can tell whether its process lives: locks may be each host's own.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from reconcilers.words.errors import EndedItself, Misconfigured
from streaming.settings import StreamSettings

LOCK = "lock"
"""A file: NFS locks only what is open for writing, and no folder can be."""
SPARKS = ("blockmgr-*", "blockmgr-*/*", "spark-*", "spark-*/*")
"""The folders that Spark makes once and believes to be there; it removes none while it runs."""


@cache
def temporary_folder(settings: StreamSettings) -> Path:
    """This process's, made at the first call. Raises `Misconfigured` where none can be made."""
    setting, parent = settings.temporary
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _locked(parent):
            _remove_left(parent)
            folder = Path(mkdtemp(prefix=f"{_of_this_host()}-", dir=parent)).resolve()
            _lock(folder, fcntl.LOCK_EX)  # for as long as this process lives
    except OSError as failed:
        raise Misconfigured(
            f"stream.{setting} {parent}: no temporary folder can be made there: {failed.strerror}"
        ) from failed
    return folder


def _remove_left(parent: Path) -> None:
    """Of this host's processes that are gone: one that lives keeps its folder locked."""
    for left in parent.iterdir():
        if left.name.rpartition("-")[0] != _of_this_host():
            continue
        try:
            os.close(_lock(left, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except OSError:
            continue
        shutil.rmtree(left, ignore_errors=True)


def _of_this_host() -> str:
    """How the names of its folders begin; a hyphen and letters follow."""
    return f"process-{socket.gethostname()}"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two processes that start at once do not remove what the other has just made."""
    number = _lock(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(number)


def _lock(folder: Path, how: int) -> int:
    """Returns the file number that holds the lock until it is closed. Raises `OSError`."""
    number = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(number, how)
    except OSError:
        os.close(number)
        raise
    return number


@dataclass(slots=True)
class SparksFolders:
    """Those that Spark has made below ``folder``, and needs until it ends."""

    folder: Path
    _made: set[Path] = field(default_factory=set)

    def check(self) -> None:
        """Raises `EndedItself` where one was removed: Spark fails from then on, and makes none."""
        there = {self.folder} if self.folder.is_dir() else set()
        there |= {each for pattern in SPARKS for each in self.folder.glob(pattern) if each.is_dir()}
        removed = self._made - there
        if removed:
            raise EndedItself(
                f"temporary folder {min(removed)} was removed under the running Spark: start again,"
                " and let nothing clean that folder (stream.temp_dir)"
            )
        self._made = there


def sparks_folders(settings: StreamSettings) -> SparksFolders:
    """Those of the Spark that has just been started."""
    made = SparksFolders(temporary_folder(settings))
    made.check()
    return made
