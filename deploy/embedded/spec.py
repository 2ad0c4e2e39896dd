"""What a stack is made of, decided at its first start."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal

from deploy.embedded.certificates import Certificates
from deploy.embedded.errors import MismatchError
from deploy.embedded.layout import Layout
from deploy.embedded.ports import free_ports
from deploy.embedded.process import replace_text

CassandraRelease = Literal["5.0", "4.1"]
Caches = Literal["small", "production"]
"""How large Cassandra's caches are: for tests on a small machine, or as a node's.

With the small ones Java compiles it lightly, which makes a start and new tables cheap.
"""

DEFAULT_KEYSPACE = "apache_james"
NEWEST_RELEASE: CassandraRelease = "5.0"
DEFAULT_RELEASE = NEWEST_RELEASE
DEFAULT_CACHES: Caches = "small"
TOPIC_PREFIX = "james"
ONE_DATA_CENTRE = "datacenter1"
"""Its name where there is one: what a node without a word about it is in."""
MOST_NODES = 9


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user of Cassandra."""

    username: str
    password: str


ADMIN = Credentials("cassandra", "cassandra")
"""The superuser that Cassandra makes itself when passwords are on."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Where the certificates are, and the port of Kafka's listener that asks clients for one."""

    folder: str
    broker: int

    @property
    def certificates(self) -> Certificates:
        """What the stack's own authority has signed."""
        return Certificates(Path(self.folder))


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports at 127.0.0.1."""

    cassandra: int
    cassandra_storage: int
    broker: int
    controller: int
    agent_http: int
    cassandra_jmx: int


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One Cassandra node and its agent: all nodes have the same ports, at addresses of their own.

    JMX and the agent's HTTP server answer at 127.0.0.1, so those ports are the node's own.
    """

    number: int
    data_centre: str
    jmx: int
    agent_http: int

    @property
    def host(self) -> str:
        """Its address."""
        return f"127.0.0.{self.number}"

    @property
    def agent_url(self) -> str:
        """Its agent's HTTP server, which answers /ping."""
        return f"http://127.0.0.1:{self.agent_http}"


@dataclass(frozen=True, slots=True)
class Spec:
    """The options of one stack; `admin` is None where Cassandra asks for no password.

    The changes of `tables`, in `keyspace`, are captured. `schema` is CQL that is carried out before
    the agent starts; it changes nothing where it was carried out already. `overlays` are files of
    deploy/cassandra whose settings take the place of those of cassandra.yaml. `others` are the
    nodes beside the first. `upgraded` are the numbers of the nodes that run the newest release by
    now, whatever the stack began with. `tls` is None where nothing is encrypted.
    """

    keyspace: str
    release: CassandraRelease
    admin: Credentials | None
    ports: Ports
    tables: tuple[str, ...]
    topic_prefix: str = TOPIC_PREFIX
    caches: Caches = DEFAULT_CACHES
    schema: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()
    data_centre: str = ONE_DATA_CENTRE
    others: tuple[NodeSpec, ...] = ()
    upgraded: tuple[int, ...] = ()
    tls: Tls | None = None

    def release_of(self, number: int) -> CassandraRelease:
        """What a node and its agent are now."""
        return NEWEST_RELEASE if number in self.upgraded else self.release

    @property
    def nodes(self) -> tuple[NodeSpec, ...]:
        """All nodes, in the order of their numbers, which begin at 1."""
        first = NodeSpec(1, self.data_centre, self.ports.cassandra_jmx, self.ports.agent_http)
        return (first, *self.others)

    @property
    def data_centres(self) -> tuple[int, ...]:
        """The number of nodes of each data centre."""
        return tuple(Counter(node.data_centre for node in self.nodes).values())

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka's clients connect first."""
        return f"127.0.0.1:{self.ports.broker}"

    @property
    def agent_bootstrap_servers(self) -> str:
        """The same for agents, which show a certificate where the stack is secure."""
        return self.bootstrap_servers if self.tls is None else f"127.0.0.1:{self.tls.broker}"

    @property
    def agent_http(self) -> str:
        """The HTTP server of the first node's agent, which answers /ping."""
        return self.nodes[0].agent_url


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the caller asks for; None means: as it was, or the default for a new stack.

    ``tables`` are those whose changes are captured. A new stack needs them; an old one keeps its
    own where none are given. ``caches`` may be others at each start. ``schema`` is CQL for what has
    to be there before the agent starts, each statement with IF NOT EXISTS. ``overlays`` are files
    of deploy/cassandra whose settings take the place of those of cassandra.yaml. ``data_centres``
    are the numbers of nodes, one for each data centre; by default one node. ``secure`` is TLS with
    certificates of clients, passwords and rights, at Cassandra and at Kafka.
    """

    keyspace: str | None = None
    release: CassandraRelease | None = None
    admin: Credentials | None = None
    tables: tuple[str, ...] = ()
    caches: Caches | None = None
    schema: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()
    data_centres: tuple[int, ...] | None = None
    secure: bool | None = None


def load(layout: Layout) -> Spec | None:
    """The spec that was stored at the first start, or None; MismatchError if unreadable."""
    try:
        raw = json.loads(layout.spec_file.read_text(encoding="utf-8"))
        if "cassandra_jmx" not in raw["ports"]:  # an older stack, which had none
            raw["ports"]["cassandra_jmx"] = next(free_ports())
        raw["ports"] = Ports(**raw["ports"])
        raw["admin"] = Credentials(**raw["admin"]) if raw["admin"] else None
        raw["tables"] = tuple(raw["tables"])
        raw["schema"] = tuple(raw.get("schema", ()))
        raw["overlays"] = tuple(raw.get("overlays", ()))
        raw["others"] = tuple(NodeSpec(**each) for each in raw.get("others", ()))
        raw["upgraded"] = tuple(raw.get("upgraded", ()))
        raw["tls"] = Tls(**raw["tls"]) if raw.get("tls") else None
        return Spec(**raw)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise MismatchError(
            f"{layout.spec_file} is not readable ({error}): use another --data-dir"
        ) from None


def decide(layout: Layout, wanted: Wanted) -> Spec:
    """The stored spec, or a new one with free ports, which is stored.

    Other tables, caches, schema and overlays than before are taken up. Raises MismatchError where
    the data directory was made with other options, or where nobody has ever said which tables are
    captured.
    """
    stored = load(layout)
    if stored is not None:
        _refuse_difference(layout, stored, wanted)
        tables, caches = wanted.tables or stored.tables, wanted.caches or stored.caches
        schema, overlays = wanted.schema or stored.schema, wanted.overlays or stored.overlays
        now = replace(stored, tables=tables, caches=caches, schema=schema, overlays=overlays)
        return _store(layout, now)
    if not wanted.tables:
        raise MismatchError(f"{layout.root} is new: say which tables are to be captured")
    candidates = free_ports()
    centres = data_centres_of(wanted.data_centres or (1,))
    spec = Spec(
        keyspace=wanted.keyspace or DEFAULT_KEYSPACE,
        release=wanted.release or DEFAULT_RELEASE,
        admin=wanted.admin or (ADMIN if wanted.secure else None),
        ports=Ports(*(next(candidates) for _ in fields(Ports))),
        tables=wanted.tables,
        caches=wanted.caches or DEFAULT_CACHES,
        schema=wanted.schema,
        overlays=wanted.overlays,
        data_centre=centres[0],
        others=tuple(
            NodeSpec(number, each, next(candidates), next(candidates))
            for number, each in enumerate(centres[1:], start=2)
        ),
        tls=Tls(str(layout.certificates), next(candidates)) if wanted.secure else None,
    )
    return _store(layout, spec)


def data_centres_of(sizes: Sequence[int]) -> list[str]:
    """The name of each node's data centre. Raises MismatchError where one is to have no node."""
    if not sizes or min(sizes) < 1 or sum(sizes) > MOST_NODES:
        raise MismatchError(f"a data centre has at least one node, a stack at most {MOST_NODES}")
    names = [ONE_DATA_CENTRE] if len(sizes) == 1 else [f"dc{n + 1}" for n in range(len(sizes))]
    return [name for name, size in zip(names, sizes, strict=True) for _ in range(size)]


def with_one_more(layout: Layout, spec: Spec) -> Spec:
    """The same with one more node in the first data centre, which is stored."""
    free = free_ports()
    last = spec.nodes[-1].number
    more = NodeSpec(last + 1, spec.data_centre, next(free), next(free))
    return _store(layout, replace(spec, others=(*spec.others, more)))


def with_upgraded(layout: Layout, spec: Spec, number: int) -> Spec:
    """The same with one node of the newest release, which is stored."""
    return _store(layout, replace(spec, upgraded=(*spec.upgraded, number)))


def _store(layout: Layout, spec: Spec) -> Spec:
    layout.make()
    replace_text(layout.spec_file, json.dumps(asdict(spec), indent=2) + "\n")
    return spec


def _refuse_difference(layout: Layout, stored: Spec, wanted: Wanted) -> None:
    pairs = (
        ("keyspace", stored.keyspace, wanted.keyspace),
        ("Cassandra", stored.release, wanted.release),
        ("authentication", stored.admin, wanted.admin),
        ("nodes", stored.data_centres, wanted.data_centres),
        ("TLS", stored.tls and "on", wanted.secure and "on"),
    )
    for name, old, new in pairs:
        if new is not None and new != old:
            shown = "off" if old is None else "on" if isinstance(old, Credentials) else old
            if isinstance(old, tuple):
                shown = " + ".join(map(str, old))
            raise MismatchError(
                f"{layout.root} was made with {name} {shown}: use another --data-dir"
            )
