"""One real Cassandra node with change capture on."""

import logging
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Sequence

from deploy.embedded import cql
from deploy.embedded.errors import EmbeddedError, StartError
from deploy.embedded.jars import LIGHT_COMPILER, UNVERIFIED, folder, java
from deploy.embedded.layout import Layout
from deploy.embedded.ports import is_open
from deploy.embedded.process import Daemon
from deploy.embedded.spec import Spec
from deploy.embedded.templates import DEPLOY, render
from deploy.embedded.wait import HANG_S, until

log = logging.getLogger(__name__)

CLUSTER_NAME = "embedded"
STOP_GRACE_S = 60.0
ALONE = ("-Xms512m", "-Xmx768m", "-Dcassandra.ring_delay_ms=1")
"""Java's options of the only node: how large its heap is, how long (ms) it listens to the others
before it takes tokens or leaves."""
ONE_OF_SEVERAL = ("-Xms256m", "-Xmx448m", "-Dcassandra.ring_delay_ms=5000")
JOINING = ("-Dcassandra.auto_bootstrap=true", "-Dcassandra.ring_delay_ms=30000")
"""A node that comes later takes data over; nodes that begin together have none.

It listens as long as by default: on a busy machine the seed is not heard of within five seconds,
and the node ends."""
SNITCH = "GossipingPropertyFileSnitch"
TEMPLATES = DEPLOY / "cassandra"
SETTING = re.compile(r"^([a-z_]+):", re.MULTILINE)


class CassandraNode:
    """Starts and stops one node; data, ports and configuration stay between starts."""

    def __init__(self, layout: Layout, spec: Spec, number: int = 1) -> None:
        self._layout = layout.of_node(number)
        self._spec = spec
        self.place = spec.nodes[number - 1]
        self._release = spec.release_of(number)
        self.daemon = Daemon("cassandra", self._layout.run, self._layout.logs / "cassandra.log")

    def launch(self, *options: str) -> None:
        """Start it unless it runs, without waiting; `options` are more of Java's.

        Raises EmbeddedError.
        """
        if not self.daemon.alive():
            self.write_config()
            self.daemon.start(self._command(options), cwd=self._layout.cassandra)

    def await_ready(self) -> None:
        """Return when it answers queries (and logins). Raises StartError."""
        until(self._answers, HANG_S, "Cassandra answers")

    def await_gossip(self) -> None:
        """Return when other nodes can speak to it. Raises StartError."""
        until(self._listens, HANG_S, "Cassandra listens to other nodes")

    def await_members(self) -> None:
        """Return when it knows all nodes of the stack: drivers learn them from it.

        Raises StartError, cql.UNREACHABLE.
        """
        spec, host = self._spec, self.place.host
        until(lambda: cql.members(spec, host) == len(spec.nodes), HANG_S, "nodes know each other")

    def stop(self) -> None:
        """Stop it in order: what it holds is flushed."""
        self.daemon.terminate(STOP_GRACE_S)

    def kill(self) -> None:
        """End it as a crash does."""
        self.daemon.kill()

    def pause(self) -> None:
        """Stop it in its tracks (SIGSTOP)."""
        self.daemon.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after pause()."""
        self.daemon.send(signal.SIGCONT)

    def erase(self) -> None:
        """Empty its disks. It must not run."""
        for each in self._layout.cassandra.iterdir():  # the folder may be a disk of its own
            shutil.rmtree(each) if each.is_dir() else each.unlink()

    def nodetool(self, *arguments: str) -> str:
        """What nodetool says about this node. Raises EmbeddedError where it fails."""
        command = [java(), f"@{TEMPLATES / 'jvm17.options'}", f"-Duser.home={self._layout.root}"]
        logback = self._layout.cassandra / "conf" / "logback.xml"
        command += [f"-Dlogback.configurationFile={logback}", self._audit_log()]
        command += ["-cp", self._classpath()]
        command.append("org.apache.cassandra.tools.NodeTool")
        command += ["-p", str(self.place.jmx), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise EmbeddedError(f"nodetool {arguments[0]} at {self.place.host}: {said[:300]}")
        return done.stdout

    def _audit_log(self) -> str:
        """Where logback.xml has its second file; without it there is one in the current folder."""
        return f"-Dstack.audit.log={self._layout.logs / 'audit.log'}"

    def write_config(self) -> None:
        """Write cassandra.yaml, which the agent reads too, and what stands beside it."""
        conf = self._layout.cassandra / "conf"
        names = ["cassandra.yaml"]
        if self._release == "5.0":
            names.append("cassandra-5.0.yaml")
        if self._spec.admin is not None:
            names.append("cassandra-auth.yaml")
        if self._spec.caches == "production":
            names.append("cassandra-caches.yaml")
        if self._spec.tls is not None:
            names.append("cassandra-tls.yaml")
        names += self._spec.overlays
        whole = conf / "cassandra.yaml.template"
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_text(
            joined((TEMPLATES / name).read_text(encoding="utf-8") for name in names),
            encoding="utf-8",
        )
        render(
            whole,
            self._layout.cassandra_yaml,
            cluster_name=CLUSTER_NAME,
            storage=str(self._layout.cassandra),
            storage_port=self._spec.ports.cassandra_storage,
            native_port=self._spec.ports.cassandra,
            address=self.place.host,
            endpoint_snitch=SNITCH if len(self._spec.nodes) > 1 else "SimpleSnitch",
            **certificate_files(self._spec),
        )
        whole.unlink()
        render(
            TEMPLATES / "cassandra-rackdc.properties",
            self._layout.rackdc,
            datacenter=self.place.data_centre,
            rack="rack1",
        )
        shutil.copy(TEMPLATES / "logback.xml", conf / "logback.xml")

    def _answers(self) -> bool:
        self._refuse_dead()
        native = self._spec.ports.cassandra
        return is_open(native, self.place.host) and cql.answers(self._spec, self.place.host)

    def _listens(self) -> bool:
        self._refuse_dead()
        return is_open(self._spec.ports.cassandra_storage, self.place.host)

    def _refuse_dead(self) -> None:
        if not self.daemon.alive():
            raise StartError(
                f"Cassandra ended during its start, see {self.daemon.log}: "
                f"{self.daemon.last_words()}"
            )

    def _classpath(self) -> str:
        return f"{folder(f'cassandra-{self._release}')}/*"

    def _command(self, options: Sequence[str]) -> list[str]:
        conf = self._layout.cassandra / "conf"
        jars = folder(f"cassandra-{self._release}")
        several = len(self._spec.nodes) > 1
        command = [java(), *(ONE_OF_SEVERAL if several else ALONE), *UNVERIFIED]
        command.append(f"@{TEMPLATES / 'jvm17.options'}")
        if self._spec.caches == "small":
            command += LIGHT_COMPILER
        if self._release == "4.1":
            command.append(f"@{TEMPLATES / 'jvm17-4.1.options'}")
            command.append(f"-javaagent:{next(jars.glob('jamm-*.jar'))}")
        command += [
            f"-Dcassandra.config={self._layout.cassandra_yaml.as_uri()}",
            f"-Dcassandra-rackdc.properties={self._layout.rackdc.as_uri()}",
            f"-Dcassandra.storagedir={self._layout.cassandra}",
            f"-Dlogback.configurationFile={conf / 'logback.xml'}",
            self._audit_log(),
            f"-Dcassandra.jmx.local.port={self.place.jmx}",
            "-Dcassandra-foreground=yes",
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.superuser_setup_delay_ms=0",
            "-Dcassandra.shutdown_announce_in_ms=0",
            *options,
        ]
        command += ["-cp", self._classpath(), "org.apache.cassandra.service.CassandraDaemon"]
        return command


def certificate_files(spec: Spec) -> dict[str, str]:
    """What a server's template says of them; nothing where nothing is encrypted."""
    if spec.tls is None:
        return {}
    made = spec.tls.certificates
    return {"ca": str(made.ca), "key_and_certificate": str(made.both("server"))}


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
