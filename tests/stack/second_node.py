"""A second Cassandra node beside that of a stack, with an agent of its own."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable

from deploy.embedded import Stack, open_session
from deploy.embedded.agent import Agent
from deploy.embedded.cassandra_node import TEMPLATES, CassandraNode
from deploy.embedded.jars import folder, java
from deploy.embedded.ports import free_ports
from deploy.embedded.spec import Layout, Spec
from tests.sessions import session_at
from tests.stack.streams import until

HOST = "127.0.0.2"
RING_SETTLES = "-Dcassandra.ring_delay_ms=5000"
"""Milliseconds that a node listens before it takes tokens, or leaves; a first node need not."""


class _Node(CassandraNode):
    """It joins, and takes a part of the data over."""

    def __init__(self, layout: Layout, spec: Spec) -> None:
        super().__init__(layout, spec)
        self._conf = layout.cassandra / "conf" / "cassandra.yaml"
        self._port, self.jmx = spec.ports.cassandra, spec.ports.cassandra_jmx

    def write_config(self) -> None:
        super().write_config()
        text = self._conf.read_text(encoding="utf-8")
        own = {"listen_address": HOST, "rpc_address": HOST, "auto_bootstrap": "true"}
        for name, value in own.items():
            text = re.sub(rf"(?m)^{name}:.*$", f"{name}: {value}", text)
        self._conf.write_text(text, encoding="utf-8")

    def _answers(self) -> bool:
        assert self.daemon.alive(), self.daemon.last_words()
        try:
            with session_at(HOST, self._port):
                return True
        except (NoHostAvailable, DriverException, OSError):
            return False

    def _command(self) -> list[str]:
        command = super()._command()
        classpath = command.index("-cp")
        return [*command[:classpath], RING_SETTLES, *command[classpath:]]

    def leave(self) -> None:
        """Give its data to the other node (`nodetool decommission`)."""
        jars = folder(f"cassandra-{self._spec.release}")
        tool = [java(), f"@{TEMPLATES / 'jvm17.options'}", f"-Duser.home={self._layout.root}"]
        tool += ["-cp", f"{jars}/*", "org.apache.cassandra.tools.NodeTool"]
        done = subprocess.run(
            [*tool, "-p", str(self.jmx), "decommission", "--force"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr or done.stdout


class _Agent(Agent):
    """It asks its own node."""

    def _command(self) -> list[str]:
        command = super()._command()
        conf = self._layout.agent / "driver.conf"
        text = conf.read_text(encoding="utf-8").replace("127.0.0.1", HOST)
        conf.write_text(text, encoding="utf-8")
        return command


class SecondNode:
    """It joins with `start`; its agent starts when it is there."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        layout = Layout(folder)
        layout.make()
        free = free_ports()
        own = replace(stack.spec.ports, agent_http=next(free), cassandra_jmx=next(free))
        spec = replace(stack.spec, ports=own)
        self._stack = stack
        self._node = _Node(layout, spec)
        self.agent = _Agent(layout, spec)

    def start(self) -> None:
        """Return when it has joined and its agent answers."""
        self._node.launch()
        until("the second node answers", self._node._answers)
        with open_session(self._stack) as session:
            self.agent.start(session)

    @property
    def jmx(self) -> str:
        """Where it answers JMX: Cassandra opens a local port on this address only."""
        return f"127.0.0.1:{self._node.jmx}"

    def leave(self) -> None:
        """Return when the cluster is without it; then its agent ends, and it."""
        self._node.leave()
        self.stop()

    def stop(self) -> None:
        """Both, in order."""
        self.agent.stop()
        self._node.kill()


@contextmanager
def second_node(stack: Stack, folder: Path) -> Iterator[SecondNode]:
    """Not started yet; gone at the end."""
    made = SecondNode(stack, folder)
    try:
        yield made
    finally:
        made.stop()
