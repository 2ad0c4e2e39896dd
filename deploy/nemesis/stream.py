"""`reconcile stream --mode repair` as the process of a run: its settings, what can happen to it.

It is run as its users run it. What it says is read from its metrics and its log.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from deploy.embedded.errors import StartError
from deploy.embedded.jars import JARS
from deploy.embedded.process import processes_of_session
from deploy.embedded.settings_file import Sections, as_toml, over
from deploy.embedded.spark_cluster import SparkCluster
from deploy.embedded.wait import HANG_S, until
from deploy.mailserver.counters import COUNTER_TABLES
from deploy.mailserver.history import MESSAGES
from deploy.mailserver.indexes import INDEX_PROJECTIONS
from deploy.nemesis.hosts import in_group
from deploy.nemesis.links import STREAM_GROUP
from deploy.stream_process import answered, launched, metrics_port

WINDOW_S = 2
LOST_AFTER_S = 60
LONGEST_UPDATE_S = 60
"""How long a user's operation may take where nodes do not answer: its counter comes last."""
QUOTA_LAG_S = 2 * LONGEST_UPDATE_S
STOP_S = 60.0
MEMORY_IS_WHOLE = "lineage is complete"
"""In its log after the first sweep: mail from before it would be mail of an unknown past."""
AS_A_SERVICE = (sys.executable, "-m", "deploy.nemesis.service")
PRODUCT = ("reconcilers", "checkpoints", "streaming")
"""The packages that executors of a cluster get."""
WORKER = b"pyspark.daemon"
"""In the command line of Spark's Python workers."""


def run_settings(stack: Path, checkpoint: Path, delay_s: int) -> Sections:
    """The stack's settings with the short delay of a run, and limits that no fault reaches."""
    changes: Sections = {
        "stream": {
            "delay": delay_s,
            "window": WINDOW_S,
            "checkpoint_dir": str(checkpoint),
            "jars": str(JARS / "spark"),
            "restart_backoff_max": 5,
        },
        "repair": {
            "projections": [MESSAGES, *INDEX_PROJECTIONS],
            "recheck_interval": 3 * delay_s,
            "re_add_shadowed": True,
            "suspects_per_minute": 10_000,
            "suspect_share": 1.0,
            "removals_per_minute": 1000,
            "removal_share": 1.0,
            "writes_per_minute": 20_000,
            "allow_unsafe_settings": True,
        },
        "tally": {
            "projections": list(COUNTER_TABLES),
            "window": WINDOW_S,
            "max_update_lag": LONGEST_UPDATE_S,
            "max_quota_lag": QUOTA_LAG_S,
            "after_outage": LONGEST_UPDATE_S,
            "correction_max_messages": 10_000,
            "correction_max_octets": 10**12,
            "corrections_per_minute": 600,
            "correction_share": 1.0,
        },
        "rights": {"truth": "eventstore"},
        "attachments": {"tables": ["attachmentv2"]},
        "sweep": {"ranges": 16},
        "canary": {"usual_delay": 3 * delay_s, "lost_after": LOST_AFTER_S},
        "metrics": {"port": 0, "canary_port": 0, "sweep_port": 0},
    }
    given = tomllib.loads(stack.read_text(encoding="utf-8"))
    return {name: given.get(name, {}) | changes.get(name, {}) for name in given | changes}


class StreamProcess:
    """The driver, its JVM and its Python workers. As a context manager it is gone after.

    Its settings, log and checkpoint are in one folder, and stay when it is killed.
    """

    def __init__(
        self,
        stack_settings: Path,
        folder: Path,
        delay_s: int,
        spark: SparkCluster | None = None,
        login: Sections | None = None,
    ) -> None:
        """Write its settings file, with this delay D, into `folder`; None: Spark runs in it.

        `login` has the settings of a login other than the stack's own.
        """
        self.delay_s = delay_s
        self._spark = spark
        self.config = folder / "reconcile.toml"
        self.log = folder / "reconcile.log"
        settings = over(run_settings(stack_settings, folder / "checkpoint", delay_s), login or {})
        if spark is not None:
            settings = over(settings, spark.settings_for(PRODUCT))
        self.config.write_text(as_toml(settings), encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None
        self._log_begins = 0

    def __enter__(self) -> "StreamProcess":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it in its own group, without waiting; its log goes on.

        After an end that a restart mends it is started again, as its unit does.
        """
        self._log_begins = self.log.stat().st_size if self.log.exists() else 0
        self._process = launched(self.config, self.log, (*in_group(STREAM_GROUP), *AS_A_SERVICE))

    def crash(self) -> None:
        """Kill it as the end of its machine does. Raises StartError if it has ended by itself."""
        self._refuse_ended()
        self.kill()

    def kill(self) -> None:
        """Kill the driver, its JVM and its workers, if they run."""
        if self._process is not None:
            self._send(processes_of_session(self._process.pid), signal.SIGKILL)
            self._process.wait()
            self._send(processes_of_session(self._process.pid), signal.SIGKILL)

    def stop(self) -> int:
        """Stop it in order. Returns its exit code."""
        assert self._process is not None
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        self.kill()
        return self._process.returncode

    def pause(self) -> None:
        """Stop all of its processes in their tracks (SIGSTOP)."""
        assert self._process is not None
        self._send(processes_of_session(self._process.pid), signal.SIGSTOP)

    def resume(self) -> None:
        """Let all of them, and Spark's workers, go on."""
        assert self._process is not None
        self._send([*processes_of_session(self._process.pid), *self.workers()], signal.SIGCONT)

    def kill_workers(self) -> None:
        """Kill Spark's workers: Spark starts others."""
        self._send(self.workers(), signal.SIGKILL)

    def pause_workers(self) -> None:
        """Stop Spark's workers in their tracks, until `resume`."""
        self._send(self.workers(), signal.SIGSTOP)

    def workers(self) -> list[int]:
        """The executors of a cluster that run now, or else Spark's Python workers."""
        assert self._process is not None
        if self._spark is not None:
            return [pid for worker in self._spark.workers for pid in worker.executors()]
        return [pid for pid in processes_of_session(self._process.pid) if WORKER in _command(pid)]

    def await_watching(self) -> None:
        """Return when it has swept everything once. Raises StartError."""
        until(self._watches, HANG_S, f"the stream watches (see {self.log})", 0.5)

    def samples(self) -> list[Sample]:
        """What its metrics say now; nothing while it does not answer. Raises StartError."""
        self._refuse_ended()
        port = metrics_port(self._said())
        if port is None:
            return []
        address = f"http://127.0.0.1:{port}/metrics"
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                text = answer.read().decode("utf-8")
        except (urllib.error.URLError, OSError):
            return []
        return [each for family in text_string_to_metric_families(text) for each in family.samples]

    def await_pause(self) -> None:
        """Return when repairs pause because of clocks. Raises StartError if they never do."""

        def pauses() -> bool:
            found = [each for each in self.samples() if each.name == "reconciler_repairs_paused"]
            return any(each.value for each in found if each.labels["reason"] == "clocks")

        until(pauses, HANG_S, "repairs pause because of clocks", 0.5)

    def left_to_a_person(self) -> frozenset[tuple[str, int]]:
        """The rows of messages, by mailbox and UID, of which a delete is not known for certain.

        Raises StartError if the command fails.
        """
        words = ["findings", "--kind", "ambiguous_range_delete", "--format", "jsonl"]
        done = answered(self.config, words)
        if done.returncode != 0:
            said = (done.stderr.strip() or "no message").splitlines()[-1]
            raise StartError(f"`reconcile findings` ended with {done.returncode}: {said[:300]}")
        found = map(json.loads, done.stdout.splitlines())
        return frozenset((each["mailboxid"], each["uid"]) for each in found)

    def _watches(self) -> bool:
        samples = self.samples()
        due = [each.value for each in samples if each.name == "reconciler_sweep_due"]
        return bool(samples) and not any(due) and MEMORY_IS_WHOLE in self._said()

    def _refuse_ended(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            raise StartError(f"the stream ended by itself, see {self.log}: {self._last_words()}")

    def _said(self) -> str:
        with self.log.open("rb") as log:
            log.seek(self._log_begins)
            return log.read().decode(errors="replace")

    def _last_words(self) -> str:
        lines = self._said().strip().splitlines() or ["it said nothing"]
        return lines[-1][:300]

    def _send(self, pids: Iterable[int], signum: signal.Signals) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signum)


def _command(pid: int) -> bytes:
    """The command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
