"""One real Cassandra node with change capture on."""

import logging
import re
import shutil
from collections.abc import Iterable

from deploy.embedded import cql
from deploy.embedded.errors import StartError
from deploy.embedded.jars import LIGHT_COMPILER, UNVERIFIED, folder, java
from deploy.embedded.ports import is_open
from deploy.embedded.process import Daemon
from deploy.embedded.spec import Layout, Spec
from deploy.embedded.templates import DEPLOY, render
from deploy.embedded.wait import HANG_S, until

log = logging.getLogger(__name__)

CLUSTER_NAME = "embedded"
STOP_GRACE_S = 60.0
JVM = ("-Xms512m", "-Xmx768m", *UNVERIFIED)
TEMPLATES = DEPLOY / "cassandra"
SETTING = re.compile(r"^([a-z_]+):", re.MULTILINE)


class CassandraNode:
    """Starts and stops the node; data, ports and configuration stay between starts."""

    def __init__(self, layout: Layout, spec: Spec) -> None:
        self._layout = layout
        self._spec = spec
        self.daemon = Daemon("cassandra", layout.run, layout.logs / "cassandra.log")

    def launch(self) -> None:
        """Start it unless it runs, without waiting. Raises EmbeddedError."""
        if not self.daemon.alive():
            self.write_config()
            self.daemon.start(self._command(), cwd=self._layout.cassandra)

    def await_ready(self) -> None:
        """Return when it answers queries (and logins). Raises StartError."""
        until(self._answers, HANG_S, "Cassandra answers")

    def stop(self) -> None:
        """Stop it in order: what it holds is flushed."""
        self.daemon.terminate(STOP_GRACE_S)

    def kill(self) -> None:
        """End it as a crash does."""
        self.daemon.kill()

    def write_config(self) -> None:
        """Write cassandra.yaml, which the agent reads too, and the logging configuration."""
        conf = self._layout.cassandra / "conf"
        names = ["cassandra.yaml"]
        if self._spec.release == "5.0":
            names.append("cassandra-5.0.yaml")
        if self._spec.admin is not None:
            names.append("cassandra-auth.yaml")
        if self._spec.caches == "production":
            names.append("cassandra-caches.yaml")
        names += self._spec.overlays
        whole = conf / "cassandra.yaml.template"
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_text(
            joined((TEMPLATES / name).read_text(encoding="utf-8") for name in names),
            encoding="utf-8",
        )
        render(
            whole,
            conf / "cassandra.yaml",
            cluster_name=CLUSTER_NAME,
            storage=str(self._layout.cassandra),
            storage_port=self._spec.ports.cassandra_storage,
            native_port=self._spec.ports.cassandra,
        )
        whole.unlink()
        shutil.copy(TEMPLATES / "logback.xml", conf / "logback.xml")

    def _answers(self) -> bool:
        if not self.daemon.alive():
            raise StartError(
                f"Cassandra ended during its start, see {self.daemon.log}: "
                f"{self.daemon.last_words()}"
            )
        return is_open(self._spec.ports.cassandra) and cql.answers(self._spec)

    def _command(self) -> list[str]:
        conf = self._layout.cassandra / "conf"
        jars = folder(f"cassandra-{self._spec.release}")
        command = [java(), *JVM, f"@{TEMPLATES / 'jvm17.options'}"]
        if self._spec.caches == "small":
            command += LIGHT_COMPILER
        if self._spec.release == "4.1":
            command.append(f"@{TEMPLATES / 'jvm17-4.1.options'}")
            command.append(f"-javaagent:{next(jars.glob('jamm-*.jar'))}")
        command += [
            f"-Dcassandra.config={(conf / 'cassandra.yaml').as_uri()}",
            f"-Dcassandra.storagedir={self._layout.cassandra}",
            f"-Dlogback.configurationFile={conf / 'logback.xml'}",
            f"-Dstack.audit.log={self._layout.logs / 'audit.log'}",
            f"-Dcassandra.jmx.local.port={self._spec.ports.cassandra_jmx}",
            "-Dcassandra-foreground=yes",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.ring_delay_ms=1",
            "-Dcassandra.superuser_setup_delay_ms=0",
            "-Dcassandra.shutdown_announce_in_ms=0",
        ]
        command += ["-cp", f"{jars}/*", "org.apache.cassandra.service.CassandraDaemon"]
        return command


def joined(parts: Iterable[str]) -> str:
    """Parts of a cassandra.yaml as one: a later one replaces settings of one line, or adds any."""
    lines: list[str] = []
    for part in parts:
        later = set(SETTING.findall(part)) if lines else set()
        kept = (
            line
            for line in lines
            if (found := SETTING.match(line)) is None or found[1] not in later
        )
        lines = [*kept, *part.splitlines()]
    return "\n".join(lines) + "\n"
