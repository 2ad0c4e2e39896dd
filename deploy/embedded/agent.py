"""The Debezium agent, which reads the node's commit log and writes change events to Kafka."""

import itertools
import json
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

from deploy.embedded import capture
from deploy.embedded.cassandra_node import CLUSTER_NAME
from deploy.embedded.cassandra_node import TEMPLATES as CASSANDRA_TEMPLATES
from deploy.embedded.errors import StartError
from deploy.embedded.jars import LIGHT_COMPILER, UNVERIFIED, folder, java
from deploy.embedded.process import Daemon, exclusive, replace_text
from deploy.embedded.spec import Credentials, Layout, Spec
from deploy.embedded.templates import DEPLOY, render
from deploy.embedded.wait import HANG_S, until

MOST_STARTS = 3
"""At its start the agent reads the node's schema from its files; a compaction may replace them."""
MISREAD = b"CorruptSSTableException"
"""In its log after such a replacement: it goes on without that file, and drops events for ever."""
STOP_GRACE_S = 15.0
JVM = ("-Xms64m", "-Xmx256m", *LIGHT_COMPILER, *UNVERIFIED)
TEMPLATES = DEPLOY / "agent"
MAIN = "io.debezium.connector.cassandra.CassandraConnectorTask"


class Agent:
    """Starts, stops, holds and pauses the agent. Its starts and stops are one at a time.

    On hold, the supervisor lets it be: a test that killed it wants it dead.
    """

    def __init__(self, layout: Layout, spec: Spec) -> None:
        self._layout = layout
        self._spec = spec
        self._hold = layout.run / "agent.hold"
        self._lock = layout.run / "agent.lock"
        self._seen_file = layout.run / "agent.tables.json"
        self.daemon = Daemon("agent", layout.run, layout.logs / "agent.log")
        self._log_begins: int | None = None

    def held(self) -> bool:
        """Whether it was stopped or paused on purpose."""
        return self._hold.exists()

    def unseen(self, session: Any) -> frozenset[str]:
        """The tables that should be captured and that this run of the agent cannot see.

        Names of those without capture, ids of those that have it. Raises cql.UNREACHABLE.
        """
        lacking = capture.lacking(session, self._spec.keyspace, self._spec.tables)
        return lacking | (capture.captured(session) - self._seen())

    def start(self, session: Any) -> None:
        """Off hold, start it, or restart it where tables appeared; return when it answers.

        Raises StartError, cql.UNREACHABLE.
        """
        self._hold.unlink(missing_ok=True)
        self.start_unless_held(session)

    def start_unless_held(self, session: Any) -> None:
        """As start, but an agent on hold stays as it is."""
        with exclusive(self._lock):
            alive = self.daemon.alive()
            unseen = self.unseen(session)
            if self.held():
                if not alive:
                    capture.switch_on(session, self._spec.keyspace, self._spec.tables)
                return
            if alive and unseen:
                self.daemon.terminate(STOP_GRACE_S)
            if not self.daemon.alive():
                self._launch(session)
        deaths = itertools.count(1)
        until(lambda: self._answers(session, deaths), HANG_S, "the agent answers")

    def stop(self) -> None:
        """Stop it in order and take it off hold."""
        with exclusive(self._lock):
            self.daemon.terminate(STOP_GRACE_S)
            self._hold.unlink(missing_ok=True)

    def kill(self) -> None:
        """End it as a crash does, and hold it."""
        with exclusive(self._lock):
            self._hold.touch()
            self.daemon.kill()

    def pause(self) -> None:
        """Stop it in its tracks (SIGSTOP), and hold it."""
        with exclusive(self._lock):
            self._hold.touch()
            self.daemon.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused agent go on, off hold."""
        with exclusive(self._lock):
            self.daemon.send(signal.SIGCONT)
            self._hold.unlink(missing_ok=True)

    def pings(self) -> bool:
        """Whether its HTTP server answers."""
        try:
            with urllib.request.urlopen(f"{self._spec.agent_http}/ping", timeout=5) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _seen(self) -> frozenset[str]:
        try:
            return frozenset(json.loads(self._seen_file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return frozenset()

    def _launch(self, session: Any) -> None:
        capture.switch_on(session, self._spec.keyspace, self._spec.tables)
        seen = sorted(capture.captured(session))
        # It notes the highest position of a table that Kafka has acknowledged. After a crash it
        # would skip what was on its way to another partition: what lies in cdc_raw is sent again.
        shutil.rmtree(self._layout.agent / "offsets", ignore_errors=True)
        self._log_begins = self.daemon.log.stat().st_size if self.daemon.log.exists() else 0
        self.daemon.start(self._command(), cwd=self._layout.agent)
        replace_text(self._seen_file, json.dumps(seen))

    def _answers(self, session: Any, deaths: Iterator[int]) -> bool:
        """Whether it answers, or is on hold by now; started again where it has ended."""
        with exclusive(self._lock):
            if self.held():
                return True
            if self._has_misread():
                self.daemon.terminate(STOP_GRACE_S)
            if not self.daemon.alive():
                if next(deaths) == MOST_STARTS:
                    raise StartError(
                        f"the agent ended during its start, see {self.daemon.log}: "
                        f"{self.daemon.last_words()}"
                    )
                self._launch(session)
        return self.pings()

    def _has_misread(self) -> bool:
        """Whether the agent that was started here could not read all of the schema."""
        if self._log_begins is None or not self.daemon.log.exists():
            return False
        return MISREAD in self.daemon.log.read_bytes()[self._log_begins :]

    def _command(self) -> list[str]:
        work = self._layout.agent
        for name in ("relocation", "offsets"):
            (work / name).mkdir(parents=True, exist_ok=True)
        major = self._spec.release.partition(".")[0]
        jars = folder(f"agent-{major}")
        driver_conf = render(
            TEMPLATES / "driver.conf",
            work / "driver.conf",
            host="127.0.0.1",
            native_port=self._spec.ports.cassandra,
            datacenter="datacenter1",
            auth=_login(self._spec.admin),
        )
        properties = render(
            TEMPLATES / "agent.properties",
            work / "agent.properties",
            connector_class=f"io.debezium.connector.cassandra.Cassandra{major}Connector",
            topic_prefix=self._spec.topic_prefix,
            cassandra_yaml=str(self._layout.cassandra / "conf" / "cassandra.yaml"),
            driver_conf=str(driver_conf),
            cluster_name=CLUSTER_NAME,
            node_id="node-1",
            work=str(work),
            bootstrap_servers=self._spec.bootstrap_servers,
            http_port=self._spec.ports.agent_http,
        )
        command = [java(), *JVM, f"@{CASSANDRA_TEMPLATES / 'jvm17.options'}"]
        if major == "4":
            command.append(f"@{CASSANDRA_TEMPLATES / 'jvm17-4.1.options'}")
            command.append(f"-javaagent:{next(jars.glob('jamm-*.jar'))}")
        command += [
            f"-Dcassandra.storagedir={self._layout.cassandra}",
            f"-Dlogback.configurationFile={TEMPLATES / 'logback.xml'}",
        ]
        return [*command, "-cp", f"{jars}/*", MAIN, str(properties)]


def _login(admin: Credentials | None) -> str:
    if admin is None:
        return ""
    return (
        "advanced.auth-provider { class = PlainTextAuthProvider, "
        f'username = "{admin.username}", password = "{admin.password}" }}'
    )
