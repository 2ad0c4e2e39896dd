"""A stack of several nodes, without a server: its options, files, commands, and its agents."""

import json
import os
import re
import subprocess
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from deploy.embedded import __main__ as command_line
from deploy.embedded import agent as agents_module
from deploy.embedded import capture, cassandra_node, interrupts, settings_file
from deploy.embedded.agent import Agent
from deploy.embedded.agents import Agents
from deploy.embedded.cassandra_node import CassandraNode
from deploy.embedded.errors import MismatchError, StartError
from deploy.embedded.layout import Layout
from deploy.embedded.node import StackNode
from deploy.embedded.process import Daemon
from deploy.embedded.spec import Spec, Wanted, decide, load, with_one_more, with_upgraded

TABLES = ("imapuidtable", "messageidtable")
HOSTS = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
IDS = {host: str(uuid.uuid4()) for host in HOSTS}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.fixture
def started(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments of the newest process; neither jars nor Java are needed to see them."""
    command: list[str] = []
    monkeypatch.setattr(
        Daemon, "start", lambda _, given, *__, **___: command.__setitem__(slice(None), given)
    )
    for module in (cassandra_node, agents_module):
        for name in ("folder", "java"):
            monkeypatch.setattr(module, name, lambda *_: layout.root)
    return command


def three(layout: Layout, *sizes: int) -> Spec:
    return decide(layout, Wanted(tables=TABLES, data_centres=sizes or (3,)))


def test_nodes_have_addresses_of_their_own_and_the_ports_that_cannot_be_shared(
    layout: Layout,
) -> None:
    spec = three(layout)
    assert [node.host for node in spec.nodes] == HOSTS
    assert {node.data_centre for node in spec.nodes} == {"datacenter1"}
    own = {port for node in spec.nodes for port in (node.jmx, node.agent_http)}
    shared = {spec.ports.cassandra, spec.ports.cassandra_storage, spec.ports.broker}
    assert len(own | shared) == 9
    assert load(layout) == spec == decide(layout, Wanted())


def test_data_centres_have_as_many_nodes_as_asked_for(layout: Layout) -> None:
    spec = three(layout, 2, 1)
    assert [node.data_centre for node in spec.nodes] == ["dc1", "dc1", "dc2"]
    with pytest.raises(MismatchError, match=r"made with nodes 2 \+ 1"):
        decide(layout, Wanted(data_centres=(3,)))


@pytest.mark.parametrize("sizes", [(0,), (2, 0), (10,), (-1, 3)])
def test_a_data_centre_without_nodes_and_too_many_nodes_are_refused(
    layout: Layout, sizes: tuple[int, ...]
) -> None:
    with pytest.raises(MismatchError, match="at least one node"):
        three(layout, *sizes)
    assert load(layout) is None


def test_one_node_is_the_default_and_what_an_older_stack_has(layout: Layout) -> None:
    spec = decide(layout, Wanted(tables=TABLES))
    assert spec.data_centres == (1,)
    (node,) = spec.nodes
    assert (node.jmx, node.agent_http) == (spec.ports.cassandra_jmx, spec.ports.agent_http)
    assert layout.of_node(1) == layout
    told = json.loads(layout.spec_file.read_text(encoding="utf-8"))
    del told["others"], told["data_centre"]
    layout.spec_file.write_text(json.dumps(told), encoding="utf-8")
    assert decide(layout, Wanted()) == spec


def test_a_node_more_is_kept(layout: Layout) -> None:
    spec = with_one_more(layout, decide(layout, Wanted(tables=TABLES)))
    assert [node.host for node in spec.nodes] == HOSTS[:2]
    assert load(layout) == spec


def test_an_upgraded_node_is_of_the_newest_release_and_the_others_are_as_they_were(
    layout: Layout, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sets: list[str] = []

    def folder(name: str) -> Path:
        sets.append(name)
        return layout.root

    monkeypatch.setattr(cassandra_node, "folder", folder)
    (layout.root / "jamm-1.jar").touch()
    spec = decide(layout, Wanted(tables=TABLES, data_centres=(3,), release="4.1"))
    spec = with_upgraded(layout, spec, 2)
    assert load(layout) == spec
    assert [spec.release_of(node.number) for node in spec.nodes] == ["4.1", "5.0", "4.1"]
    for number in (1, 2):
        CassandraNode(layout, spec, number).launch()
    assert not [each for each in started if "jamm" in str(each)]
    assert [*dict.fromkeys(sets)] == ["cassandra-4.1", "cassandra-5.0"]
    assert "cdc_on_repair_enabled" not in node_settings(layout, 1)
    assert node_settings(layout, 2)["cdc_on_repair_enabled"] is False


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [([], None), (["--nodes", "3"], (3,)), (["--data-centres", "2,1"], (2, 1))],
)
def test_the_command_line_says_how_many_nodes(
    arguments: list[str],
    sizes: tuple[int, ...] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Wanted] = []

    def stack(_data_dir: Path, wanted: Wanted) -> None:
        asked.append(wanted)
        raise MismatchError("enough")

    monkeypatch.setattr(command_line, "Stack", stack)
    monkeypatch.setattr(interrupts, "raise_once", lambda: None)
    assert command_line.main(["up", "--data-dir", str(tmp_path), *arguments]) == 1
    assert [each.data_centres for each in asked] == [sizes]


def node_settings(layout: Layout, number: int) -> dict[str, Any]:
    spec = load(layout)
    assert spec is not None
    CassandraNode(layout, spec, number).write_config()
    read: dict[str, Any] = yaml.safe_load(layout.of_node(number).cassandra_yaml.read_text("utf-8"))
    return read


def test_a_node_listens_at_its_address_and_knows_its_data_centre(layout: Layout) -> None:
    three(layout, 2, 1)
    third = node_settings(layout, 3)
    assert (third["listen_address"], third["rpc_address"]) == (HOSTS[2], HOSTS[2])
    assert third["endpoint_snitch"] == "GossipingPropertyFileSnitch"
    (seeds,) = third["seed_provider"][0]["parameters"]
    assert seeds["seeds"].startswith(HOSTS[0])
    assert third["cdc_raw_directory"] == str(layout.root / "node-3" / "cassandra" / "cdc_raw")
    told = layout.of_node(3).rackdc.read_text(encoding="utf-8").splitlines()
    assert {"dc=dc2", "rack=rack1"} <= set(told)


def test_the_only_node_is_configured_as_ever(layout: Layout) -> None:
    decide(layout, Wanted(tables=TABLES))
    only = node_settings(layout, 1)
    assert (only["listen_address"], only["rpc_address"]) == (HOSTS[0], HOSTS[0])
    assert only["endpoint_snitch"] == "SimpleSnitch"


def test_several_nodes_have_small_heaps_and_an_only_node_has_not(
    tmp_path: Path, started: list[str]
) -> None:
    for folder, wanted, heap in (
        ("one", Wanted(tables=TABLES), "-Xmx768m"),
        ("three", Wanted(tables=TABLES, data_centres=(3,)), "-Xmx448m"),
    ):
        layout = Layout(tmp_path / folder)
        CassandraNode(layout, decide(layout, wanted)).launch()
        assert heap in started


def test_a_node_that_replaces_another_says_so_and_is_not_the_seed(
    layout: Layout, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = three(layout)
    agents = Agents.of(layout, spec)
    nodes = [StackNode(layout, spec, number, agents) for number in (1, 2, 3)]
    monkeypatch.setattr(CassandraNode, "await_ready", stop_here)
    written = layout.of_node(3).cassandra / "data" / "rows"
    written.parent.mkdir()
    written.touch()
    with pytest.raises(StopIteration):
        nodes[2].replace()
    assert not written.exists()
    assert "-Dcassandra.replace_address_first_boot=127.0.0.3" in started
    assert "-Dcassandra.auto_bootstrap=true" in started
    started.clear()
    with pytest.raises(StartError, match="the seed of the others"):
        nodes[0].replace()
    assert not started


@pytest.mark.parametrize(
    ("said", "starts"), [("IllegalStateException: Unable to contact any seeds: []", 2), ("dead", 1)]
)
def test_a_node_that_heard_no_other_while_it_joined_begins_once_more(
    layout: Layout, started: list[str], monkeypatch: pytest.MonkeyPatch, said: str, starts: int
) -> None:
    spec, tries = three(layout), list[StackNode]()
    node = StackNode(layout, spec, 3, Agents.of(layout, spec))

    def end(_node: CassandraNode) -> None:
        tries.append(node)
        raise StartError(f"Cassandra ended during its start: {said}")

    monkeypatch.setattr(CassandraNode, "await_ready", end)
    with pytest.raises(StartError, match="ended during its start"):
        node.replace()
    assert len(tries) == starts


def stop_here(_node: CassandraNode) -> None:
    raise StopIteration


def test_nodetool_leaves_no_file_where_it_is_run(
    layout: Layout, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its logback.xml is that of the node: each name in it is given."""
    told: list[list[str]] = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        told.append(command)
        return SimpleNamespace(returncode=0, stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    node = CassandraNode(layout, decide(layout, Wanted(tables=TABLES)))
    node.nodetool("status")
    node.launch()
    logback = (layout.cassandra / "conf" / "logback.xml").read_text()
    names = set(re.findall(r"\$\{(stack[a-z.]*)\}", logback))
    assert names
    for command in (*told, started):
        assert names <= {
            each[2:].partition("=")[0] for each in map(str, command) if each[:2] == "-D"
        }


@pytest.mark.usefixtures("started")
def test_an_agent_has_its_nodes_id_and_files(layout: Layout) -> None:
    """Address, data centre and snitch stand in those."""
    spec = three(layout, 2, 1)
    hosts = [SimpleNamespace(address=host, host_id=each) for host, each in IDS.items()]
    metadata = SimpleNamespace(all_hosts=lambda: hosts)
    session = SimpleNamespace(cluster=SimpleNamespace(metadata=metadata))
    told = Agent(layout, spec, 3).environment(session)
    own = layout.root / "node-3"
    assert told["NODE_ID"] == IDS[HOSTS[2]]
    assert told["CASSANDRA_YAML"] == str(own / "cassandra" / "conf" / "cassandra.yaml")
    assert told["CASSANDRA_RELEASE"] == spec.release
    assert told["AGENT_WORK"] == str(own / "agent")
    assert told["AGENT_HTTP_PORT"] == str(spec.nodes[2].agent_http)
    hosts.pop()
    with pytest.raises(StartError, match=r"no node of the cluster is at 127\.0\.0\.3"):
        Agent(layout, spec, 3).environment(session)


def test_settings_name_all_nodes_and_agents(layout: Layout) -> None:
    spec = three(layout)
    settings = tomllib.loads(settings_file.render(layout, spec))
    assert settings["cassandra"]["hosts"] == HOSTS
    assert settings["agent"]["http"] == [node.agent_url for node in spec.nodes]
    assert "local_dc" not in settings["cassandra"]


def test_settings_say_the_levels_where_there_are_several_data_centres(layout: Layout) -> None:
    cassandra = tomllib.loads(settings_file.render(layout, three(layout, 2, 1)))["cassandra"]
    assert cassandra["local_dc"] == "dc1"
    assert (cassandra["consistency"], cassandra["serial_consistency"]) == ("QUORUM", "SERIAL")


class Table:
    """Which tables there are, and who ran when capture was turned on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lacking = frozenset({"imapuidtable"})
        self.captured: frozenset[str] = frozenset()
        self.running: list[list[int]] = []
        self.agents: Agents
        monkeypatch.setattr(capture, "lacking", lambda *_: self.lacking)
        monkeypatch.setattr(capture, "captured", lambda *_: self.captured)
        monkeypatch.setattr(capture, "switch_on", self.switch_on)

    def switch_on(self, *_: object) -> None:
        alive = [each.place.number for each in self.agents.each if each.daemon.alive()]
        self.running.append(alive)
        self.lacking = frozenset()
        self.captured = frozenset({"a table's id"})


class Sleeper(Agent):
    """It does nothing, for long."""

    def _command(self) -> list[str]:
        return ["sleep", "600"]

    def environment(self, session: Any) -> dict[str, str]:
        return dict(os.environ)

    def pings(self) -> bool:
        return self.daemon.alive()


@pytest.fixture
def table(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    made, spec = Table(monkeypatch), three(layout)
    for number in (1, 2, 3):
        layout.of_node(number).make()
    made.agents = Agents(spec, [Sleeper(layout, spec, number) for number in (1, 2, 3)])
    yield made
    for each in made.agents.each:
        each.stop()


def test_capture_is_turned_on_while_no_agent_runs(table: Table) -> None:
    table.agents.start(session=None)
    table.lacking = frozenset({"mailbox"})
    table.running.clear()
    before = [each.daemon.pid() for each in table.agents.each]
    table.agents.start(session=None)
    assert table.running == [[]]
    after = [each.daemon.pid() for each in table.agents.each]
    assert None not in after
    assert not set(before) & set(after)
    assert not table.agents.unseen(session=None)


def test_while_an_agent_is_paused_new_tables_wait_and_a_dead_one_is_started(table: Table) -> None:
    table.agents.start(session=None)
    first, second, third = table.agents.each
    second.pause()
    third.daemon.kill()
    table.lacking = frozenset({"mailbox"})
    table.running.clear()
    assert table.agents.ended()
    before = first.daemon.pid()
    table.agents.start(session=None)
    assert not table.running
    assert (first.daemon.pid(), third.daemon.alive()) == (before, True)
    assert table.agents.unseen(session=None) == {"mailbox"}


def test_who_is_on_hold_is_not_asked_started_or_waited_for(table: Table) -> None:
    table.agents.start(session=None)
    first, *_ = table.agents.each
    assert table.agents.host() == HOSTS[0]
    first.kill()
    assert table.agents.host() == HOSTS[1]
    table.lacking = frozenset({"mailbox"})
    table.agents.start(session=None)
    assert not first.daemon.alive()
    assert not table.agents.ended()
    assert not table.agents.unseen(session=None)
