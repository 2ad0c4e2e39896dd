"""Connections that can be cut, and the texts of the iptables rules that cut them. Pure.

Every process of a run has a group of its own, and each connection that it opens gets the group's
number as its mark. All clients of this machine have one address: the mark tells which process
opened a connection, address and port tell to which server.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deploy.embedded.spec import Spec
from deploy.nemesis.schedule import FaultChoice, InjectedFault

Words = tuple[str, ...]

CLUSTER = "cluster"
"""The group of nodes and agents: one of them has a fault at a time, so QUORUM always answers."""
STREAM = "stream"
CHAIN = "nemesis"
FIRST_GROUP = 61_000
STREAM_GROUP = FIRST_GROUP
"""The Unix group of the stream, its JVM and its workers."""
A_SHARE = ("-m", "statistic", "--mode", "random", "--probability", "0.3")
"""So many packets of a lossy connection are lost. TCP sends them again."""
DROP = ("-j", "DROP")
NO_RESET = ("--tcp-flags", "RST", "NONE")
"""A reset that answers a refused packet belongs to its connection, and must get through."""
CUTS: dict[InjectedFault, Words] = {
    InjectedFault.REFUSED: (*NO_RESET, "-j", "REJECT", "--reject-with", "tcp-reset"),
    InjectedFault.DROPPED: DROP,
    InjectedFault.ONE_WAY: DROP,
    InjectedFault.LOSSY: (*A_SHARE, *DROP),
}
"""What becomes of the packets of a cut connection."""


def node_group(number: int) -> int:
    """The Unix group of a node."""
    return FIRST_GROUP + 10 + number


def agent_group(number: int) -> int:
    """The Unix group of a node's agent."""
    return FIRST_GROUP + 20 + number


def first_rules(spec: Spec) -> list[Words]:
    """The arguments of iptables that mark connections and make the chain of cuts."""
    numbers = [node.number for node in spec.nodes]
    groups = [STREAM_GROUP, *map(node_group, numbers), *map(agent_group, numbers)]
    return [*map(_mark, groups), ("-N", CHAIN), ("-A", "OUTPUT", "-o", "lo", "-j", CHAIN)]


def _mark(group: int) -> Words:
    opened = ("-p", "tcp", "-m", "conntrack", "--ctdir", "ORIGINAL")
    owner = ("-m", "owner", "--gid-owner", str(group))
    return (
        "-t",
        "mangle",
        "-A",
        "OUTPUT",
        *opened,
        *owner,
        "-j",
        "CONNMARK",
        "--set-mark",
        str(group),
    )


@dataclass(frozen=True, slots=True)
class Link:
    """The connections that the processes of a group open to one server."""

    group: int
    host: str
    port: int

    def requests(self) -> Words:
        """What matches the packets to the server."""
        return (*self._marked(), "-d", self.host, "--dport", str(self.port))

    def answers(self) -> Words:
        """What matches the packets from the server."""
        return (*self._marked(), "-s", self.host, "--sport", str(self.port))

    def _marked(self) -> Words:
        return ("-p", "tcp", "-m", "connmark", "--mark", str(self.group))


@dataclass(frozen=True, slots=True)
class CutPlace:
    """A process and its peers: the links that it opened, and those that they opened to it."""

    process: str
    peers: str
    group: str
    opened: tuple[Link, ...]
    accepted: tuple[Link, ...] = ()

    def cuts(self) -> Iterator[tuple[FaultChoice, list[Words]]]:
        """Every cut here, with its rules."""
        sent = [*map(Link.requests, self.opened), *map(Link.answers, self.accepted)]
        received = [*map(Link.answers, self.opened), *map(Link.requests, self.accepted)]
        both, out, back = (
            f"{self.process} and {self.peers}",
            f"from {self.process} to {self.peers}",
            f"from {self.peers} to {self.process}",
        )
        for kind, fate in CUTS.items():
            one_way = kind is InjectedFault.ONE_WAY
            matches = {out: sent, back: received} if one_way else {both: [*sent, *received]}
            for target, matched in matches.items():
                yield FaultChoice(kind, target, self.group), [(*each, *fate) for each in matched]


def places(spec: Spec, brokers: Sequence[int]) -> Iterator[CutPlace]:
    """Where connections are cut: between nodes, and between agents or the stream and servers."""
    port, native = spec.ports.cassandra_storage, spec.ports.cassandra
    for node in spec.nodes:
        others = [each for each in spec.nodes if each.number != node.number]
        opened = tuple(Link(node_group(node.number), each.host, port) for each in others)
        accepted = tuple(Link(node_group(each.number), node.host, port) for each in others)
        yield CutPlace(node.host, "the other nodes", CLUSTER, opened, accepted)
        to_brokers = tuple(Link(agent_group(node.number), "127.0.0.1", each) for each in brokers)
        yield CutPlace(f"agent of {node.host}", "the brokers", CLUSTER, to_brokers)
        to_node = Link(STREAM_GROUP, node.host, native)
        yield CutPlace("the stream", node.host, CLUSTER, (to_node,))
    to_all = tuple(Link(STREAM_GROUP, node.host, native) for node in spec.nodes)
    yield CutPlace("the stream", "all nodes", STREAM, to_all)
    to_brokers = tuple(Link(STREAM_GROUP, "127.0.0.1", each) for each in brokers)
    yield CutPlace("the stream", "the brokers", STREAM, to_brokers)
