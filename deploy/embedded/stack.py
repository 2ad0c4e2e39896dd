"""The whole stack: one object to start, look at, disturb and stop it."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from deploy.embedded import cql, jars, settings_file
from deploy.embedded import spec as stored
from deploy.embedded.agents import Agents
from deploy.embedded.broker import Broker
from deploy.embedded.errors import MismatchError
from deploy.embedded.interrupts import held_back
from deploy.embedded.layout import Layout
from deploy.embedded.node import StackNode
from deploy.embedded.process import Daemon, exclusive
from deploy.embedded.spec import Credentials, Spec, Wanted

SUPERVISOR_GRACE_S = 20.0


class Stack:
    """Cassandra, Kafka and the agents in one data directory, with a supervisor beside them.

    What concerns one node or one agent here concerns the first; `nodes` has all.

    As a context manager it is up inside, and down, with its data kept, after.
    """

    def __init__(self, data_dir: Path | str, wanted: Wanted | None = None) -> None:
        """Decide the ports and options, or take those of `data_dir`. Raises MismatchError."""
        self.layout = Layout(Path(data_dir).resolve())
        self.spec: Spec = stored.decide(self.layout, wanted or Wanted())
        self.layout.make()
        self._kafka = Broker(self.layout, self.spec)
        self._make_nodes()
        self._supervisor = Daemon(
            "supervisor", self.layout.run, self.layout.logs / "supervisor.log"
        )

    def _make_nodes(self) -> None:
        self._agents = Agents.of(self.layout, self.spec)
        each = [node.number for node in self.spec.nodes]
        self.nodes = [StackNode(self.layout, self.spec, n, self._agents) for n in each]

    @classmethod
    def existing(cls, data_dir: Path | str) -> Self:
        """The stack whose data is in `data_dir`. Raises MismatchError where there is none."""
        if stored.load(Layout(Path(data_dir).resolve())) is None:
            raise MismatchError(f"there is no stack in {data_dir}: run up first")
        return cls(data_dir)

    @property
    def host(self) -> str:
        """A node to ask: the first that is not stopped, killed or paused with its agent."""
        return self._agents.host()

    @property
    def cassandra_port(self) -> int:
        """The port of CQL at each node's address."""
        return self.spec.ports.cassandra

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka's clients connect first."""
        return self.spec.bootstrap_servers

    @property
    def agent_http(self) -> str:
        """The HTTP server of the first node's agent, which answers /ping."""
        return self.spec.agent_http

    @property
    def keyspace(self) -> str:
        """Whose tables are watched."""
        return self.spec.keyspace

    @property
    def topic_prefix(self) -> str:
        """The agent's name, and that of the topic of all change events."""
        return self.spec.topic_prefix

    @property
    def config(self) -> Path:
        """The ready reconcile.toml."""
        return self.layout.settings_file

    @property
    def admin(self) -> Credentials | None:
        """The superuser's login, or None where Cassandra asks for none."""
        return self.spec.admin

    @property
    def audit_log(self) -> Path:
        """Where Cassandra writes its audit log, where authentication is on."""
        return self.layout.logs / "audit.log"

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    def up(self) -> None:
        """Start what does not run; return when all is ready. What it started ends if that fails.

        Raises EmbeddedError.
        """
        with exclusive(self.layout.run / "stack.lock"):
            ready = False
            try:
                self._start_all()
                ready = True
            finally:
                if not ready:
                    self._stop_all()

    def down(self) -> None:
        """Stop every process of the stack, in order; the data stays."""
        with exclusive(self.layout.run / "stack.lock"):
            self._stop_all()

    def missing(self) -> list[str]:
        """The names of the parts that do not run."""
        found = [part.name for part in (self._kafka.daemon, self._supervisor) if not part.alive()]
        for node in self.nodes:
            of = "" if node.place.number == 1 else f" of {node.place.host}"
            parts = (node.cassandra.daemon, node.agent.daemon)
            found += [f"{part.name}{of}" for part in parts if not part.alive()]
        return found

    def describe(self) -> dict[str, object]:
        """What a client needs to know, ready for JSON."""
        return {
            "cassandra": {"host": "127.0.0.1", "port": self.cassandra_port},
            "kafka": {"bootstrap_servers": self.bootstrap_servers},
            "agent": {"http": self.agent_http},
            "topic_prefix": self.topic_prefix,
            "keyspace": self.keyspace,
            "config": str(self.config),
        }

    def capture_tables(self) -> None:
        """Have every table that exists now captured, without waiting for the supervisor.

        Returns when the agents see them all. Raises EmbeddedError, cql.UNREACHABLE.
        """
        with cql.session(self.spec, self.host) as session:
            self._agents.start(session)

    def add_node(self) -> StackNode:
        """One node more in the first data centre, which is not started yet: see `StackNode.join`.

        The supervisor watches its agent from the next up() on.
        """
        self.spec = stored.with_one_more(self.layout, self.spec)
        self._make_nodes()
        self.nodes[-1].agent.hold()
        return self.nodes[-1]

    def upgrade(self, node: StackNode) -> None:
        """Stop a node with its agent, and start both in the newest release on the node's data.

        `nodes` has new objects after. Raises as `StackNode.start`.
        """
        number = node.place.number
        self._supervisor.terminate(SUPERVISOR_GRACE_S)
        node.stop()
        self.spec = stored.with_upgraded(self.layout, self.spec, number)
        jars.fetch(self._jars())
        self._make_nodes()
        self.nodes[number - 1].start()
        self._supervise()

    @contextmanager
    def unsupervised(self) -> Iterator[None]:
        """Meanwhile no table that appears is captured, and nothing that died is started."""
        self._supervisor.send(signal.SIGSTOP)
        try:
            yield
        finally:
            self._supervisor.send(signal.SIGCONT)

    def uncaptured(self, session: Any) -> frozenset[str]:
        """The tables that an agent does not see yet; empty: every change from now on is captured.

        Names of tables without capture, ids of others. Raises cql.UNREACHABLE.
        """
        return self._agents.unseen(session)

    def agent_answers(self) -> bool:
        """Whether the HTTP server of each agent answers now."""
        return all(node.agent.pings() for node in self.nodes)

    def kill_agent(self) -> None:
        """End the agent as a crash does; it stays dead until start_agent()."""
        self.nodes[0].agent.kill()

    def start_agent(self) -> None:
        """Start the agent and wait until it answers. Raises EmbeddedError, cql.UNREACHABLE."""
        self.nodes[0].agent.let_go()
        self.capture_tables()

    def pause_agent(self) -> None:
        """Stop the agent in its tracks until resume_agent()."""
        self.nodes[0].agent.pause()

    def resume_agent(self) -> None:
        """Let a paused agent go on."""
        self.nodes[0].agent.resume()

    def stop_cassandra(self) -> None:
        """Stop Cassandra in order."""
        self.nodes[0].cassandra.stop()

    def kill_cassandra(self) -> None:
        """End Cassandra as a crash does."""
        self.nodes[0].cassandra.kill()

    def start_cassandra(self) -> None:
        """Start Cassandra on its port and data, and wait until it answers. Raises EmbeddedError."""
        self.nodes[0].cassandra.launch()
        self.nodes[0].cassandra.await_ready()

    def kill_kafka(self) -> None:
        """End Kafka as a crash does."""
        self._kafka.kill()

    def start_kafka(self) -> None:
        """Start Kafka on its port and data, and wait until it answers. Raises EmbeddedError."""
        self._kafka.launch()
        self._kafka.await_ready()

    def pause_kafka(self) -> None:
        """Stop Kafka in its tracks until resume_kafka()."""
        self._kafka.pause()

    def resume_kafka(self) -> None:
        """Let a paused Kafka go on."""
        self._kafka.resume()

    def _start_all(self) -> None:
        jars.fetch(self._jars())
        if self.spec.tls is not None:
            self.spec.tls.certificates.make()
        self.config.write_text(settings_file.render(self.layout, self.spec), encoding="utf-8")
        first, *others = (node.cassandra for node in self.nodes)
        first.launch()
        self._kafka.launch()
        if others:
            first.await_gossip()
        for each in others:
            each.launch()
        self._kafka.await_ready()
        for node in self.nodes:
            node.cassandra.await_ready()
        for node in self.nodes:
            if others:
                node.cassandra.await_members()
            node.agent.resume()
        with cql.session(self.spec) as session:
            for statement in self.spec.schema:
                session.execute(statement)
            self._agents.start(session)
        self._supervise()

    def _jars(self) -> tuple[str, ...]:
        """The sets of jars that its servers run from."""
        releases = sorted({self.spec.release_of(node.number) for node in self.spec.nodes})
        nodes = [f"cassandra-{each}" for each in releases]
        agents = [f"agent-{each.partition('.')[0]}" for each in releases]
        return (*nodes, *agents, "kafka")

    def _supervise(self) -> None:
        command = [sys.executable, "-m", "deploy.embedded", "supervise"]
        self._supervisor.start([*command, "--data-dir", str(self.layout.root)], cwd=jars.ROOT)

    def _stop_all(self) -> None:
        with held_back():
            self._supervisor.terminate(SUPERVISOR_GRACE_S)
            for node in self.nodes:
                node.agent.stop()
            self._kafka.stop()
            for node in self.nodes:
                node.cassandra.stop()


def open_session(stack: Stack) -> Any:
    """A context manager giving a driver session under the admin's login, rows as dicts."""
    return cql.session(stack.spec, stack.host)
