"""The start of an agent: what it writes and runs, with a stand-in for Java."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
START = ROOT / "deploy" / "agent" / "start.sh"
HARD = "p\"a\\q${x} #:=&%é€😀'"
"""A password of characters that mean something to a shell, HOCON, JAAS or Java's properties."""
NODE = """\
cluster_name: 'Mail of Rome'
# rpc_address: 10.9.9.9
rpc_address: "10.0.0.3"  # of this node
native_transport_port: 9142
"""


class Node:
    """A node with its files, and the agent started beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work = folder, folder / "work"
        self.yaml = folder / "conf" / "cassandra.yaml"
        self.jars = folder / "jars"
        for each in (self.yaml.parent, self.jars, folder / "bin"):
            each.mkdir()
        self.yaml.write_text(NODE, encoding="utf-8")
        for name in ("jamm-0.3.2", "jmx_prometheus_javaagent-1.0.1"):
            (self.jars / f"{name}.jar").touch()
        java = folder / "bin" / "java"
        java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
        java.chmod(0o755)

    def start(self, **more: str) -> subprocess.CompletedProcess[str]:
        given = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "CASSANDRA_RELEASE": "5.0",
            "CASSANDRA_YAML": str(self.yaml),
            "KAFKA_BOOTSTRAP_SERVERS": "kafka:9092",
            "AGENT_WORK": str(self.work),
            "AGENT_JARS": str(self.jars),
            "AGENT_CONFIG": str(self.folder / "etc"),
        }
        environment = {name: value for name, value in (given | more).items() if value}
        return subprocess.run(
            [str(START)], env=environment, capture_output=True, text=True, check=False
        )

    def arguments(self, **more: str) -> list[str]:
        """Those of Java."""
        done = self.start(**more)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    def properties(self, **more: str) -> dict[str, str]:
        self.arguments(**more)
        lines = (self.work / "agent.properties").read_text("utf-8").splitlines()
        pairs = (line.split("=", 1) for line in lines if line.strip() and line[0] != "#")
        return {name: java_string(value) for name, value in pairs}

    def driver(self, **more: str) -> str:
        self.arguments(**more)
        return (self.work / "driver.conf").read_text("utf-8")


def java_string(text: str) -> str:
    """What Java reads: of a string of HOCON, and of a value in a file of properties."""
    return str(json.loads(f'"{text}"'))


def hocon(text: str, key: str) -> str:
    """The value of a key in quotes."""
    found = re.search(rf'(?:^|[\s,]){key} = "((?:[^"\\]|\\.)*)"', text)
    assert found, f"no {key} in {text}"
    return java_string(found[1])


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_it_reads_the_yaml_of_the_node_where_that_is(node: Node) -> None:
    written = node.properties(NODE_ID="b")
    assert written["cassandra.config"] == str(node.yaml)
    assert written["cassandra.cluster.name"] == "Mail of Rome"
    assert (written["cassandra.node.id"], written["topic.prefix"]) == ("b", "james")
    assert written["kafka.producer.bootstrap.servers"] == "kafka:9092"
    assert written["kafka.producer.security.protocol"] == "PLAINTEXT"
    assert node.yaml.read_text("utf-8") == NODE
    assert hocon_contact(node.driver()) == "10.0.0.3:9142"
    for name in ("commit.log.relocation.dir", "offset.backing.store.dir"):
        assert Path(written[name]).is_dir()
    assert "$" not in node.driver()


def hocon_contact(text: str) -> str:
    found = re.search(r'contact-points = \["([^"]*)"\]', text)
    assert found
    return found[1]


def test_a_node_that_listens_at_every_address_is_asked_at_its_own(node: Node) -> None:
    node.yaml.write_text("rpc_address: 0.0.0.0\n", encoding="utf-8")
    assert hocon_contact(node.driver()) == "127.0.0.1:9042"
    at = {"CASSANDRA_HOST": "10.0.0.4", "CASSANDRA_PORT": "9043"}
    assert hocon_contact(node.driver(**at)) == "10.0.0.4:9043"
    node.yaml.write_text("rpc_interface: eth0\n", encoding="utf-8")
    done = node.start()
    assert (done.returncode, "set CASSANDRA_HOST" in done.stderr) == (2, True)


def test_its_snitch_reads_the_rack_of_the_node(node: Node) -> None:
    rackdc = node.yaml.with_name("cassandra-rackdc.properties")
    assert not [each for each in node.arguments() if "rackdc" in each]
    rackdc.write_text("dc=rome\nrack=r1\n", encoding="utf-8")
    assert f"-Dcassandra-rackdc.properties=file://{rackdc}" in node.arguments()


@pytest.mark.parametrize(
    ("release", "connector", "agents"),
    [("5.0", "Cassandra5Connector", []), ("4.1", "Cassandra4Connector", ["jamm-0.3.2.jar"])],
)
def test_the_release_chooses_connector_and_options(
    node: Node, release: str, connector: str, agents: list[str]
) -> None:
    written = node.properties(CASSANDRA_RELEASE=release)
    assert written["connector.class"] == f"io.debezium.connector.cassandra.{connector}"
    told = node.arguments(CASSANDRA_RELEASE=release)
    assert [each for each in told if each.startswith("-javaagent:")] == [
        f"-javaagent:{node.jars / name}" for name in agents
    ]
    files = [Path(each[1:]).resolve() for each in told if each.startswith("@")]
    names = ["jvm17.options"] + (["jvm17-4.1.options"] if release == "4.1" else [])
    assert files == [ROOT / "deploy" / "cassandra" / name for name in names]
    assert told[-3:] == [
        f"{node.jars}/*",
        "io.debezium.connector.cassandra.CassandraConnectorTask",
        str(node.work / "agent.properties"),
    ]


def test_metrics_are_served_where_a_port_is_given(node: Node) -> None:
    jar, told = "jmx_prometheus_javaagent-1.0.1.jar", node.arguments(AGENT_METRICS_PORT="7071")
    (option,) = [each for each in told if each.startswith("-javaagent:")]
    before, config = option.rsplit(":", 1)
    assert before == f"-javaagent:{node.jars / jar}=7071"
    assert Path(config).is_file()
    (node.jars / jar).unlink()
    done = node.start(AGENT_METRICS_PORT="7071")
    assert (done.returncode, "has no jmx_prometheus_javaagent-*.jar" in done.stderr) == (2, True)


@pytest.mark.parametrize("stands_in", ["environment", "file"])
def test_the_driver_gets_any_password_as_it_is(node: Node, stands_in: str) -> None:
    assert "auth-provider" not in node.driver()
    given = {"CASSANDRA_USERNAME": HARD[::-1], "CASSANDRA_PASSWORD": HARD}
    if stands_in == "file":
        file = node.folder / "password"
        file.write_text(f"{HARD}\n", encoding="utf-8")
        given |= {"CASSANDRA_PASSWORD": "", "CASSANDRA_PASSWORD_FILE": str(file)}
    text = node.driver(**given)
    assert "class = PlainTextAuthProvider" in text
    assert (hocon(text, "username"), hocon(text, "password")) == (HARD[::-1], HARD)
    assert HARD not in node.start(**given).stdout
    for name in ("driver.conf", "agent.properties"):
        assert (node.work / name).stat().st_mode & 0o077 == 0


def test_the_driver_gets_its_stores(node: Node) -> None:
    assert "ssl-engine-factory" not in node.driver()
    given = {"CASSANDRA_TRUST_STORE": "/tls/ca.p12", "STORE_PASSWORD": HARD}
    text = node.driver(**given)
    assert hocon(text, "truststore-path") == "/tls/ca.p12"
    assert hocon(text, "truststore-password") == HARD
    assert "keystore" not in text
    text = node.driver(**given, CASSANDRA_KEY_STORE="/tls/agent.p12")
    assert hocon(text, "keystore-path") == "/tls/agent.p12"
    assert hocon(text, "keystore-password") == HARD


@pytest.mark.parametrize("ca", ["", "/tls/ca.pem"])
def test_the_producer_gets_any_password_as_it_is(node: Node, ca: str) -> None:
    written = node.properties(KAFKA_CA=ca, KAFKA_USERNAME="agent", KAFKA_PASSWORD=HARD)
    protocol = "SASL_SSL" if ca else "SASL_PLAINTEXT"
    assert written["kafka.producer.security.protocol"] == protocol
    assert written["kafka.producer.sasl.mechanism"] == "SCRAM-SHA-512"
    login = re.fullmatch(
        r'\S+\.ScramLoginModule required username="agent" password="((?:[^"\\]|\\.)*)";',
        written["kafka.producer.sasl.jaas.config"],
    )
    assert login
    assert re.sub(r"\\(.)", r"\1", login[1]) == HARD


def test_the_producer_shows_a_certificate(node: Node) -> None:
    written = node.properties(KAFKA_CA="/tls/ca.pem", KAFKA_CERTIFICATE="/tls/agent.pem")
    told = {name.removeprefix("kafka.producer."): value for name, value in written.items()}
    assert told["security.protocol"] == "SSL"
    assert (told["ssl.truststore.type"], told["ssl.keystore.type"]) == ("PEM", "PEM")
    assert told["ssl.truststore.location"] == "/tls/ca.pem"
    assert told["ssl.keystore.location"] == "/tls/agent.pem"


def test_the_plain_mechanism_has_its_own_module(node: Node) -> None:
    written = node.properties(KAFKA_USERNAME="agent", KAFKA_MECHANISM="PLAIN")
    assert ".PlainLoginModule required" in written["kafka.producer.sasl.jaas.config"]


def test_an_operators_own_files_are_appended(node: Node) -> None:
    (node.folder / "etc").mkdir()
    (node.folder / "etc" / "driver.conf").write_text("a.b = 1\n", encoding="utf-8")
    (node.folder / "etc" / "agent.properties").write_text("kafka.producer.x=y\n", encoding="utf-8")
    assert node.properties()["kafka.producer.x"] == "y"
    assert node.driver().endswith("\na.b = 1\n")


def test_an_agent_begins_without_the_offsets_of_its_last_run(node: Node) -> None:
    """After a crash they name what another partition had not acknowledged."""
    noted, on_disk = node.work / "offsets" / "offset.dat", node.work / "relocation" / "segment.log"
    for each in (noted, on_disk):
        each.parent.mkdir(parents=True)
        each.write_text("of the last run", encoding="utf-8")
    node.start()
    assert (noted.exists(), on_disk.exists()) == (False, True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"KAFKA_BOOTSTRAP_SERVERS": ""}, "set KAFKA_BOOTSTRAP_SERVERS"),
        ({"CASSANDRA_RELEASE": ""}, "set it to 5.0 or 4.1"),
        ({"CASSANDRA_RELEASE": "4.0"}, "CASSANDRA_RELEASE is '4.0': set it to 5.0 or 4.1"),
        ({"CASSANDRA_YAML": "/nowhere.yaml"}, "/nowhere.yaml cannot be read"),
        ({"CASSANDRA_RELEASE": "4.1", "AGENT_JARS": "/nowhere"}, "/nowhere has no jamm-*.jar"),
    ],
)
def test_a_missing_setting_is_one_line(node: Node, given: dict[str, str], told: str) -> None:
    """With exit code 2, after which systemd does not start it again."""
    done = node.start(**given)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("script", sorted((ROOT / "deploy").glob("**/*.sh")), ids=lambda p: p.name)
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("no shellcheck on the PATH (Debian: apt-get install shellcheck)")
    done = subprocess.run([program, str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""
