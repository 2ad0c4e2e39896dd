"""The folder of a process's temporary files: those of Spark, PySpark and a sweep.

It is not in /tmp, which systems clean while a stream runs. It is made when Spark starts, below the
folder that the settings name. A killed process removes nothing, so the next process of this host
removes its folder. Folders of other hosts in a shared place are left: a lock may be known on its
own host only.
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
from threading import Lock

from reconcilers.words.errors import EndedItself, Misconfigured
from streaming.settings import StreamSettings

LOCK = "lock"
"""A file, because NFS locks only what is open for writing, and a folder cannot be."""
_MAKING = Lock()
"""The streams of several families begin at the same time."""
SPARKS = ("blockmgr-*", "blockmgr-*/*", "spark-*", "spark-*/*")
"""Folders that Spark makes once and never checks again; it removes none while it runs."""


def temporary_folder(settings: StreamSettings) -> Path:
    """This process's folder, made at the first call. Raises `Misconfigured` if that fails."""
    with _MAKING:
        return _made(*settings.temporary)  # families have settings of their own besides


@cache
def _made(setting: str, parent: Path) -> Path:
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


def logins_folder(settings: StreamSettings) -> Path | None:
    """Where the logins of Spark's clients are kept; None on a cluster: its hosts have their own.

    Raises `Misconfigured`.
    """
    return temporary_folder(settings) if settings.is_local else None


def _remove_left(parent: Path) -> None:
    """Remove folders of this host's ended processes: a running one keeps its folder locked."""
    for left in parent.iterdir():
        if left.name.rpartition("-")[0] != _of_this_host():
            continue
        try:
            os.close(_lock(left, fcntl.LOCK_EX | fcntl.LOCK_NB))
        except OSError:
            continue
        shutil.rmtree(left, ignore_errors=True)


def _of_this_host() -> str:
    """The beginning of this host's folder names; a hyphen and letters follow."""
    return f"process-{socket.gethostname()}"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock, so that no process removes a folder that another has just made."""
    number = _lock(folder, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(number)


def _lock(folder: Path, how: int) -> int:
    """Lock the folder. Returns a file number to close, which unlocks it. Raises `OSError`."""
    number = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(number, how)
    except OSError:
        os.close(number)
        raise
    return number


@dataclass(slots=True)
class SparksFolders:
    """The folders that Spark has made below ``folder``, and needs until it ends."""

    folder: Path
    _made: set[Path] = field(default_factory=set)

    def check(self) -> None:
        """Raise `EndedItself` if one was removed: Spark does not make it again, and fails."""
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
    """The folders of the Spark that has just been started."""
    made = SparksFolders(temporary_folder(settings))
    made.check()
    return made
