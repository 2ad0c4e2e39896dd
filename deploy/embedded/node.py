"""One Cassandra node of a stack with its agent, and what can happen to both."""

from deploy.embedded import cql
from deploy.embedded.agents import Agents
from deploy.embedded.cassandra_node import JOINING, CassandraNode
from deploy.embedded.errors import StartError
from deploy.embedded.layout import Layout
from deploy.embedded.spec import Spec

NOT_HEARD = "Unable to contact any seeds"
"""Cassandra ends with it where gossip was lost while it joined: an operator starts it again."""


class StackNode:
    """Starts, stops, disturbs and replaces a node together with its agent.

    What is stopped, killed or paused here stays so: the supervisor does not start its agent.
    """

    def __init__(self, layout: Layout, spec: Spec, number: int, agents: Agents) -> None:
        layout.of_node(number).make()
        self.cassandra = CassandraNode(layout, spec, number)
        self.agent = agents.each[number - 1]
        self.place = spec.nodes[number - 1]
        self._agents = agents
        self._spec = spec

    def stop(self) -> None:
        """Stop both in order."""
        with self.agent.locked():
            self.agent.hold()
            self.agent.end()
        self.cassandra.stop()

    def kill(self) -> None:
        """End both as a crash does."""
        self.agent.kill()
        self.cassandra.kill()

    def pause(self) -> None:
        """Stop both in their tracks (SIGSTOP)."""
        self.agent.pause()
        self.cassandra.pause()

    def resume(self) -> None:
        """Let both go on after pause()."""
        self.cassandra.resume()
        self.agent.resume()

    def start(self, *options: str) -> None:
        """Start both again, and wait until they answer; `options` are more of Cassandra's Java.

        Raises EmbeddedError, cql.UNREACHABLE.
        """
        self.cassandra.launch(*options)
        self.cassandra.await_ready()
        self.agent.let_go()
        with cql.session(self._spec, self.place.host) as session:
            self._agents.start(session)

    def host_id(self) -> str:
        """Its id in the cluster. Raises cql.UNREACHABLE, StartError."""
        with cql.session(self._spec, self.place.host) as session:
            return cql.host_id(session, self.place.host)

    def join(self) -> None:
        """Start it for the first time, beside nodes that have data. Raises as `start`."""
        self.start(*JOINING)

    def replace(self) -> None:
        """Kill both, empty their disks, and let the node take its data over from the others.

        Not for the first node: the others find the cluster by it. Raises as `start`.
        """
        if self.place.number == 1:
            raise StartError("the first node is the seed of the others: replace another")
        try:
            self._begin_empty()
        except StartError as failed:
            if NOT_HEARD not in str(failed):
                raise
            self._begin_empty()

    def _begin_empty(self) -> None:
        self.kill()
        self.cassandra.erase()
        self.agent.erase()
        self.start(*JOINING, f"-Dcassandra.replace_address_first_boot={self.place.host}")

    def leave(self) -> None:
        """Give its data to the others, then stop both. Raises EmbeddedError."""
        self.cassandra.nodetool("decommission", "--force")
        self.stop()
