"""Detached processes; a stranger with the pid of a pid file is not taken for one of them."""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from deploy.embedded.errors import StartError
from deploy.embedded.interrupts import held_back
from deploy.embedded.wait import HANG_S


def replace_text(target: Path, text: str) -> None:
    """Write a file that others may be reading: they see all of what it was, or all of this."""
    fresh = target.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(target)


def identity(pid: int) -> str | None:
    """What tells the process `pid` from a later one with the same pid; None when it is not running.

    Start time and boot on Linux, start time by `ps` elsewhere. A zombie is not running.
    """
    if not Path("/proc/self/stat").exists():
        shown = subprocess.run(
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
        return None if not shown or shown.startswith("Z") else shown.split(maxsplit=1)[1]
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field, the program's name, is in brackets and may hold anything.
    fields = stat.rpartition(")")[2].split()
    state, start_ticks = fields[0], fields[19]
    if state in "ZX":
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{boot}:{start_ticks}"


def processes_of_session(leader: int) -> list[int]:
    """The processes that run in this session (found on Linux only)."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        # After the name in brackets: state, parent, process group, session.
        state, _parent, _group, session = text.rpartition(")")[2].split()[:4]
        if session == str(leader) and state not in "ZX":
            members.append(int(stat.parent.name))
    return members


@contextmanager
def exclusive(lock_file: Path) -> Iterator[None]:
    """Hold `lock_file` against other processes and threads; waits for as long as it takes."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class Daemon:
    """One named background process of a stack: started in a session of its own, output to a log.

    The words in `NAME.prefix`, a file in its run folder with one a line, come before its command:
    programs that change something, such as its group, and then run the rest in their place.
    """

    def __init__(self, name: str, run: Path, log: Path) -> None:
        self.name = name
        self.log = log
        self._pid_file = run / f"{name}.pid"
        self._prefix_file = run / f"{name}.prefix"
        self._child: subprocess.Popen[bytes] | None = None

    def pid(self) -> int | None:
        """The pid of the running process, or None."""
        if self._child is not None:
            self._child.poll()  # reaps it, if it ended and was ours
        try:
            stored = self._pid_file.read_text(encoding="utf-8").split("\n")
        except FileNotFoundError:
            return None
        if len(stored) < 2 or not stored[0].isdigit():
            return None
        pid = int(stored[0])
        return pid if identity(pid) == stored[1] else None

    def precede(self, words: Sequence[str]) -> None:
        """From its next start on these words come before its command, whoever starts it."""
        replace_text(self._prefix_file, "".join(f"{word}\n" for word in words))

    def alive(self) -> bool:
        """Whether it runs (a stopped process, SIGSTOP, does)."""
        return self.pid() is not None

    def start(
        self, command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Start it unless it runs; without an `environment` it has that of this process.

        Raises StartError when the program cannot be run.
        """
        if self.alive():
            return
        with held_back():  # a process without its pid file would never be stopped
            self._launch(command, cwd, environment)

    def _launch(
        self, command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None
    ) -> None:
        prefix = self._prefix_file.read_text("utf-8") if self._prefix_file.exists() else ""
        with self.log.open("ab") as output:
            try:
                child = subprocess.Popen(
                    [*prefix.splitlines(), *command],
                    cwd=cwd,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise StartError(f"{self.name} cannot be started: {error}") from error
        self._child = child
        mark = identity(child.pid) or ""
        replace_text(self._pid_file, f"{child.pid}\n{mark}\n")

    def send(self, signum: signal.Signals) -> None:
        """Send a signal; nothing happens when it does not run."""
        pid = self.pid()
        if pid is None:
            return
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            return

    def kill(self) -> None:
        """End it at once, as a crash does, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self._gone(HANG_S)

    def terminate(self, grace_s: float) -> None:
        """Ask it to end; after `grace_s` seconds end it at once."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)  # a stopped process would not see the request
        if not self._gone(grace_s):
            self.kill()
        self._pid_file.unlink(missing_ok=True)

    def last_words(self) -> str:
        """The last line of its log that speaks of an error, or the last line, to show a person."""
        if not self.log.exists():
            return "no log"
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-400:]
        bad = [line for line in lines if "ERROR" in line or "Exception" in line or "FATAL" in line]
        return (bad or lines or ["empty log"])[-1].strip()[:300]

    def _gone(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True
