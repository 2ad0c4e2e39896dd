"""The Debezium agent, which reads the node's commit log and writes change events to Kafka."""

import itertools
import json
import os
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from deploy.embedded import capture, cql
from deploy.embedded.certificates import STORE_PASSWORD, Certificates
from deploy.embedded.errors import StartError
from deploy.embedded.jars import LIGHT_COMPILER, UNVERIFIED, folder, java
from deploy.embedded.layout import Layout
from deploy.embedded.process import Daemon, exclusive, replace_text
from deploy.embedded.spec import Credentials, Spec
from deploy.embedded.templates import DEPLOY
from deploy.embedded.wait import HANG_S, until

MOST_STARTS = 3
"""At its start the agent reads the node's schema from its files; a compaction may replace them."""
MISREAD = b"CorruptSSTableException"
"""In its log after such a replacement: it goes on without that file, and drops events for ever."""
STOP_GRACE_S = 15.0
JVM = ("-Xms64m", "-Xmx256m", *LIGHT_COMPILER, *UNVERIFIED)
START = DEPLOY / "agent" / "start.sh"
"""What operators run too; its settings are variables of its environment."""


class Agent:
    """Ends, holds and pauses one agent; `Agents` starts it. One of these happens at a time.

    On hold, the supervisor lets it be: a test that killed it wants it dead.
    """

    def __init__(self, layout: Layout, spec: Spec, number: int = 1) -> None:
        self._layout = layout.of_node(number)
        self._spec = spec
        self.place = spec.nodes[number - 1]
        run = self._layout.run
        self._hold = run / "agent.hold"
        self._lock = run / "agent.lock"
        self._seen_file = run / "agent.tables.json"
        self.daemon = Daemon("agent", run, self._layout.logs / "agent.log")
        self._log_begins: int | None = None

    def held(self) -> bool:
        """Whether it was stopped or paused on purpose."""
        return self._hold.exists()

    def hold(self) -> None:
        """Keep whoever starts agents from starting it."""
        self._hold.touch()

    def let_go(self) -> None:
        """Take it off hold."""
        self._hold.unlink(missing_ok=True)

    def locked(self) -> AbstractContextManager[None]:
        """Meanwhile nobody else starts or ends it."""
        return exclusive(self._lock)

    def seen(self) -> frozenset[str]:
        """The ids of the captured tables that were there when it was last started."""
        try:
            return frozenset(json.loads(self._seen_file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return frozenset()

    def launch(self, session: Any) -> None:
        """Start it, without waiting, while it is `locked`. Raises StartError, cql.UNREACHABLE."""
        seen = sorted(capture.captured(session))
        self._log_begins = self.daemon.log.stat().st_size if self.daemon.log.exists() else 0
        self.daemon.start(self._command(), self._layout.agent, self.environment(session))
        replace_text(self._seen_file, json.dumps(seen))

    def await_answer(self, session: Any) -> None:
        """Return when it answers, or is on hold by now; it is started again where it has ended.

        Raises StartError, cql.UNREACHABLE.
        """
        deaths = itertools.count(1)
        until(lambda: self._answers(session, deaths), HANG_S, "the agent answers")

    def end(self) -> None:
        """End it in order, while it is `locked`."""
        self.daemon.terminate(STOP_GRACE_S)

    def stop(self) -> None:
        """Stop it in order and take it off hold."""
        with self.locked():
            self.end()
            self.let_go()

    def kill(self) -> None:
        """End it as a crash does, and hold it."""
        with self.locked():
            self.hold()
            self.daemon.kill()

    def pause(self) -> None:
        """Stop it in its tracks (SIGSTOP), and hold it."""
        with self.locked():
            self.hold()
            self.daemon.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused agent go on, off hold."""
        with self.locked():
            self.daemon.send(signal.SIGCONT)
            self.let_go()

    def pings(self) -> bool:
        """Whether its HTTP server answers."""
        try:
            with urllib.request.urlopen(f"{self.place.agent_url}/ping", timeout=5) as reply:
                return bool(reply.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def erase(self) -> None:
        """Empty its disk. It must not run."""
        shutil.rmtree(self._layout.agent)
        self._layout.make()

    def _answers(self, session: Any, deaths: Iterator[int]) -> bool:
        with self.locked():
            if self.held():
                return True
            if self._has_misread():
                self.end()
            if not self.daemon.alive():
                if next(deaths) == MOST_STARTS:
                    raise StartError(
                        f"the agent ended during its start, see {self.daemon.log}: "
                        f"{self.daemon.last_words()}"
                    )
                self.launch(session)
        return self.pings()

    def _has_misread(self) -> bool:
        """Whether the agent that was started here could not read all of the schema."""
        if self._log_begins is None or not self.daemon.log.exists():
            return False
        return MISREAD in self.daemon.log.read_bytes()[self._log_begins :]

    def environment(self, session: Any) -> dict[str, str]:
        """With it `START` becomes this agent. Raises StartError, cql.UNREACHABLE."""
        release = self._spec.release_of(self.place.number)
        given = {
            "JAVA_HOME": str(Path(java()).parents[1]),
            "CASSANDRA_RELEASE": release,
            "CASSANDRA_YAML": str(self._layout.cassandra_yaml),
            "CASSANDRA_STORAGE": str(self._layout.cassandra),
            "KAFKA_BOOTSTRAP_SERVERS": self._spec.agent_bootstrap_servers,
            "TOPIC_PREFIX": self._spec.topic_prefix,
            "NODE_ID": cql.host_id(session, self.place.host),
            "AGENT_WORK": str(self._layout.agent),
            "AGENT_CONFIG": str(self._layout.agent / "appended"),
            "AGENT_JARS": str(folder(f"agent-{release.partition('.')[0]}")),
            "AGENT_HTTP_PORT": str(self.place.agent_http),
            "AGENT_JAVA_OPTIONS": " ".join(JVM),
        }
        if self._spec.tls is not None:
            given |= _encrypted(self._spec.tls.certificates)
        if self._spec.admin is not None:
            given |= _login(self._spec.admin)
        return {"PATH": os.environ["PATH"], **given}

    def _command(self) -> list[str]:
        return [str(START)]


def _encrypted(made: Certificates) -> dict[str, str]:
    return {
        "CASSANDRA_TRUST_STORE": str(made.trust_store),
        "CASSANDRA_KEY_STORE": str(made.key_store("agent")),
        "STORE_PASSWORD": STORE_PASSWORD,
        "KAFKA_CA": str(made.ca),
        "KAFKA_CERTIFICATE": str(made.both("agent")),
    }


def _login(admin: Credentials) -> dict[str, str]:
    return {"CASSANDRA_USERNAME": admin.username, "CASSANDRA_PASSWORD": admin.password}
