"""One real Kafka broker that is its own controller (KRaft)."""

import base64
import signal
import subprocess
import uuid

from deploy.embedded import topics
from deploy.embedded.cassandra_node import certificate_files
from deploy.embedded.errors import StartError
from deploy.embedded.jars import LIGHT_COMPILER, UNVERIFIED, folder, java
from deploy.embedded.kafka_clients import PASSWORD
from deploy.embedded.layout import Layout
from deploy.embedded.ports import is_open
from deploy.embedded.process import Daemon
from deploy.embedded.spec import Spec
from deploy.embedded.templates import DEPLOY, append, render
from deploy.embedded.wait import HANG_S, until

STOP_GRACE_S = 30.0
JVM = (
    "-Xms128m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",
    *LIGHT_COMPILER,
    *UNVERIFIED,
)
TEMPLATES = DEPLOY / "embedded"


class Broker:
    """Starts and stops the broker; data, ports and configuration stay between starts."""

    def __init__(self, layout: Layout, spec: Spec) -> None:
        self._layout = layout
        self._spec = spec
        self.daemon = Daemon("kafka", layout.run, layout.logs / "kafka.log")

    def launch(self) -> None:
        """Start it unless it runs, without waiting. Raises EmbeddedError."""
        if self.daemon.alive():
            return
        properties = render(
            TEMPLATES / "kafka.properties",
            self._layout.kafka / "server.properties",
            broker_port=self._spec.ports.broker,
            controller_port=self._spec.ports.controller,
            storage=str(self._layout.kafka),
        )
        if self._spec.tls is not None:
            append(
                TEMPLATES / "kafka-tls.properties",
                properties,
                broker_port=self._spec.ports.broker,
                tls_port=self._spec.tls.broker,
                controller_port=self._spec.ports.controller,
                password=PASSWORD,
                **certificate_files(self._spec),
            )
        if not (self._layout.kafka / "data" / "meta.properties").exists():
            self._format(str(properties), a_cluster_id())
        self.daemon.start([*self._java(), "kafka.Kafka", str(properties)], cwd=self._layout.kafka)

    def await_ready(self) -> None:
        """Return when it answers and every topic is there. Raises StartError."""
        until(self._answers, HANG_S, "Kafka answers")
        topics.create(self._spec)

    def stop(self) -> None:
        """Stop it in order."""
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

    def _answers(self) -> bool:
        if not self.daemon.alive():
            raise StartError(
                f"Kafka ended during its start, see {self.daemon.log}: {self.daemon.last_words()}"
            )
        return is_open(self._spec.ports.broker) and topics.answers(self._spec)

    def _java(self) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={TEMPLATES / 'log4j2.properties'}"
        return [java(), *JVM, logging, "-cp", f"{folder('kafka')}/*"]

    def _format(self, properties: str, cluster_id: str) -> None:
        command = [*self._java(), "kafka.tools.StorageTool", "format"]
        # one argument: as two, an id that begins with a dash would be taken for an option
        command += [f"--cluster-id={cluster_id}", "-c", properties]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise StartError(f"Kafka's storage could not be formatted: {said[:300]}")


def a_cluster_id() -> str:
    """A new one, as Kafka writes it: a UUID in URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
