"""A standalone Spark master and its workers, from the Spark of pip's PySpark.

The executors' Python has our packages and not our project: a driver has to send its code.
"""

import os
import secrets
import signal
import sysconfig
import venv
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from deploy.embedded.errors import StartError
from deploy.embedded.jars import LIGHT_COMPILER, ROOT, UNVERIFIED
from deploy.embedded.ports import free_ports, is_open
from deploy.embedded.process import Daemon, processes_of_session
from deploy.embedded.settings_file import Sections
from deploy.embedded.wait import HANG_S, until

STOP_GRACE_S = 20.0
HEAP = "128m"
"""Of the master and of each worker; an executor's is `spark.executor.memory`."""
MEMORY_MIB = 1024
"""What a worker has for each executor: half a gigabyte, with Spark's overhead."""
EXECUTOR = b"CoarseGrainedExecutorBackend"


class SparkWorker:
    """One worker at an address of its own, with a core for each application of its cluster."""

    def __init__(self, cluster: "SparkCluster", number: int) -> None:
        self.host = f"127.0.0.{number + 1}"
        self._cluster = cluster
        self._folder = cluster.folder / f"worker-{number}"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.daemon = Daemon(f"spark-worker-{number}", cluster.folder, self._folder / "log")

    def start(self) -> None:
        """Start it; executors follow when an application asks for them."""
        where = ["--host", self.host, "--webui-port", str(next(self._cluster.ports))]
        most = self._cluster.applications
        size = ["--cores", str(most), "--memory", f"{most * MEMORY_MIB}m"]
        where += ["--work-dir", str(self._folder / "work")]
        of = "org.apache.spark.deploy.worker.Worker"
        self.daemon.start(
            self._cluster.command(of, *where, *size, self._cluster.url), cwd=self._folder
        )

    def stop(self) -> None:
        """End it at once with its executors: before them, as it would start others."""
        leader = self.daemon.pid()
        self.daemon.kill()
        while leader is not None and (left := processes_of_session(leader)):
            _send(left, signal.SIGKILL)

    def pause(self) -> None:
        """Stop it in its tracks with its executors (SIGSTOP), as a host that hangs."""
        _send(self._processes(), signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after pause()."""
        _send(self._processes(), signal.SIGCONT)

    def kill_executors(self) -> None:
        """End its executors as a crash does; the worker starts others."""
        _send(self.executors(), signal.SIGKILL)

    def executors(self) -> Sequence[int]:
        """The JVMs of its executors."""
        return [each for each in self._processes() if EXECUTOR in _command_of(each)]

    def _processes(self) -> Sequence[int]:
        leader = self.daemon.pid()
        return [] if leader is None else processes_of_session(leader)


class SparkCluster:
    """A master at 127.0.0.1 and two workers for some applications at a time.

    All files are below `folder`.
    """

    def __init__(self, folder: Path, applications: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.applications = applications
        self.ports = free_ports()
        self._port, self._web = next(self.ports), next(self.ports)
        self._master = Daemon("spark-master", folder, folder / "master.log")
        self.workers = [SparkWorker(self, number) for number in (1, 2)]
        self.secret = secrets.token_hex(16)

    @property
    def _options(self) -> Path:
        """What the master and the workers read."""
        return self.folder / "options.conf"

    @property
    def _login(self) -> dict[str, str]:
        """Options with which master, workers, executors and driver ask for the secret."""
        return {"spark.authenticate": "true", "spark.authenticate.secret": self.secret}

    @property
    def url(self) -> str:
        """What `stream.master` is set to."""
        return f"spark://127.0.0.1:{self._port}"

    @property
    def web(self) -> str:
        """The address of the master's page, which can also end an application."""
        return f"http://127.0.0.1:{self._web}"

    def settings_for(self, packages: Iterable[str]) -> Sections:
        """What a settings file needs for an application with an executor on each worker.

        These packages of the project are all that the executors get of it.
        """
        options = {
            "spark.pyspark.python": str(interpreter_without_project(self.folder / "python")),
            "spark.submit.pyFiles": str(code_zip(self.folder / "code.zip", packages)),
            "spark.executor.memory": "512m",
            "spark.executor.cores": 1,
            "spark.cores.max": len(self.workers),
            "spark.executor.extraJavaOptions": " ".join(LIGHT_COMPILER),
            **self._login,
        }
        return {"stream": {"master": self.url}, "spark": options}

    def precede(self, words: Sequence[str]) -> None:
        """From the next start on these words come before each command, as in `Daemon.precede`."""
        for each in (self._master, *(worker.daemon for worker in self.workers)):
            each.precede(words)

    def start(self) -> None:
        """Start all, and wait until the master answers. Raises StartError."""
        self._options.touch(0o600)
        lines = (f"{name} {value}\n" for name, value in self._login.items())
        self._options.write_text("".join(lines), encoding="utf-8")
        where = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", str(self._web)]
        self._master.start(
            self.command("org.apache.spark.deploy.master.Master", *where), cwd=self.folder
        )
        until(self._answers, HANG_S, "Spark's master answers")
        for each in self.workers:
            each.start()

    def stop(self) -> None:
        """End all."""
        for each in self.workers:
            each.stop()
        self._master.terminate(STOP_GRACE_S)

    def command(self, of: str, *arguments: str) -> list[str]:
        """How one of its daemons is started; it does not know where the project is."""
        options = " ".join((*LIGHT_COMPILER, *UNVERIFIED, "-Dspark.master.rest.enabled=false"))
        environment = {
            "SPARK_DAEMON_MEMORY": HEAP,
            "SPARK_DAEMON_JAVA_OPTS": options,
            "SPARK_HOME": str(spark_home()),
        }
        given = [f"{name}={value}" for name, value in environment.items()]
        forgotten = ("-u", "PYTHONPATH", "-u", "SPARK_SUBMIT_OPTS", "-u", "SPARK_LOCAL_DIRS")
        return [
            "env",
            *forgotten,
            *given,
            str(spark_home() / "bin" / "spark-class"),
            of,
            "--properties-file",
            str(self._options),
            *arguments,
        ]

    def _answers(self) -> bool:
        if not self._master.alive():
            raise StartError(f"Spark's master ended: {self._master.last_words()}")
        return is_open(self._port)


def spark_home() -> Path:
    """The folder of PySpark, which is a whole Spark."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def interpreter_without_project(folder: Path) -> Path:
    """A Python in `folder` that has our packages; the project, installed as editable, it has not.

    A folder that a `.pth` file names is searched, but the `.pth` files in it are not read.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, symlinks=True, clear=True)
        here = sysconfig.get_paths()["purelib"]
        there = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        (there / "packages.pth").write_text(f"{here}\n", encoding="utf-8")
    return python


def code_zip(target: Path, packages: Iterable[str]) -> Path:
    """The project's packages in one file, for `spark.submit.pyFiles`."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for package in packages:
            for file in sorted((ROOT / package).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    made.write(file, file.relative_to(ROOT))
    return target


def _send(processes: Iterable[int], signum: signal.Signals) -> None:
    for each in processes:
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(each, signum)


def _command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
