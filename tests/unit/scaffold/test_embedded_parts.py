"""What the embedded stack is made of, without a server."""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
import yaml

from deploy.embedded import broker, cassandra_node, jars, ports, settings_file
from deploy.embedded.cassandra_node import CassandraNode
from deploy.embedded.errors import FetchError, MismatchError, MissingToolError, StartError
from deploy.embedded.layout import Layout
from deploy.embedded.process import Daemon, identity
from deploy.embedded.spec import ADMIN, Wanted, decide, load
from deploy.embedded.wait import until

TABLES = ("imapuidtable", "messageidtable")
DASHED = uuid.UUID(int=0xF8 << 120)
"""Written in base64, this cluster id begins with a dash, as one in 64 does."""
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.make()
    return layout


def test_a_daemon_starts_once_and_ends_for_good(layout: Layout) -> None:
    daemon = Daemon("sleeper", layout.run, layout.logs / "sleeper.log")
    daemon.start(SLEEP, cwd=layout.root)
    pid = daemon.pid()
    daemon.start(SLEEP, cwd=layout.root)
    assert daemon.pid() == pid
    assert Daemon("sleeper", layout.run, layout.logs / "other.log").pid() == pid
    daemon.send(signal.SIGSTOP)
    assert daemon.alive()
    daemon.terminate(grace_s=5)
    assert not daemon.alive()


def test_a_prefix_comes_before_the_command_of_whoever_starts_it(layout: Layout) -> None:
    log = layout.logs / "sleeper.log"
    Daemon("sleeper", layout.run, log).precede(["env", "OF_PREFIX=two words"])
    daemon = Daemon("sleeper", layout.run, log)
    daemon.start(["sh", "-c", 'echo "$OF_PREFIX"'], cwd=layout.root)
    until(lambda: not daemon.alive(), 60, "it has ended")
    assert log.read_text() == "two words\n"


def test_a_stale_pid_file_never_means_a_stranger(layout: Layout) -> None:
    (layout.run / "sleeper.pid").write_text(f"{os.getpid()}\nanother boot:1\n", encoding="utf-8")
    daemon = Daemon("sleeper", layout.run, layout.logs / "sleeper.log")
    assert daemon.pid() is None
    daemon.terminate(grace_s=1)  # or this process would end here
    assert identity(os.getpid()) is not None


def test_a_program_that_is_not_there_is_one_line(layout: Layout) -> None:
    daemon = Daemon("ghost", layout.run, layout.logs / "ghost.log")
    with pytest.raises(StartError, match="ghost cannot be started"):
        daemon.start([str(layout.root / "missing")], cwd=layout.root)


def test_ports_are_free_distinct_and_below_those_of_clients() -> None:
    found = ports.free_ports()
    taken = [next(found) for _ in range(5)]
    assert len(set(taken)) == 5
    assert all(ports.FIRST <= port <= ports.LAST for port in taken)
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", taken[0]))
        busy.listen()
        assert not ports.is_free(taken[0])
        assert ports.is_open(taken[0])


def test_two_stacks_that_start_at_once_draw_different_ports(tmp_path: Path) -> None:
    drawn = [next(ports.free_ports(seed=1, claims=tmp_path)) for _ in range(2)]
    assert drawn[0] != drawn[1]
    long_ago = time.time() - ports.CLAIM_S - 1
    os.utime(tmp_path / str(drawn[0]), (long_ago, long_ago))
    again = next(ports.free_ports(seed=1, claims=tmp_path))
    assert again == drawn[0], "a claim ends by itself"
    assert next(ports.free_ports(seed=1, claims=tmp_path)) not in drawn


def test_a_stack_keeps_its_options(layout: Layout) -> None:
    assert load(layout) is None
    first = decide(layout, Wanted(keyspace="mail", release="4.1", admin=ADMIN, tables=TABLES))
    assert decide(layout, Wanted()) == first
    with pytest.raises(MismatchError, match=r"was made with Cassandra 4\.1"):
        decide(layout, Wanted(release="5.0"))


def test_a_new_stack_is_told_what_to_capture_and_an_old_one_may_be_told_more(
    layout: Layout,
) -> None:
    with pytest.raises(MismatchError, match="say which tables are to be captured"):
        decide(layout, Wanted())
    assert load(layout) is None
    decide(layout, Wanted(tables=TABLES))
    assert decide(layout, Wanted()).tables == TABLES
    more = (*TABLES, "messageanswered")
    assert decide(layout, Wanted(tables=more)).tables == more
    stored = load(layout)
    assert stored is not None
    assert stored.tables == more


def test_caches_are_small_unless_a_node_is_to_be_measured(layout: Layout) -> None:
    assert decide(layout, Wanted(tables=TABLES)).caches == "small"
    small = node_settings(layout)
    assert decide(layout, Wanted(caches="production")).caches == "production"
    large = node_settings(layout)
    assert decide(layout, Wanted()).caches == "production"
    assert small.keys() == large.keys()
    changed = {name for name in small if small[name] != large[name]}
    assert changed == {"file_cache_size", "key_cache_size"}
    assert (small["file_cache_size"], large["file_cache_size"]) == ("32MiB", "256MiB")


def test_a_node_that_is_to_be_measured_is_compiled_as_in_production(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(Daemon, "start", lambda _, command, **__: started.extend(command))
    for name in ("folder", "java"):  # neither jars nor Java are needed to see the command
        monkeypatch.setattr(cassandra_node, name, lambda *_: layout.root)
    CassandraNode(layout, decide(layout, Wanted(tables=TABLES))).launch()
    assert set(jars.LIGHT_COMPILER) <= set(started)
    started.clear()
    CassandraNode(layout, decide(layout, Wanted(caches="production"))).launch()
    assert set(jars.LIGHT_COMPILER).isdisjoint(started)


def test_settings_of_cassandra_may_be_others_at_each_start(layout: Layout) -> None:
    slow = ("cassandra-slow-sync.yaml",)
    assert decide(layout, Wanted(tables=TABLES)).overlays == ()
    assert decide(layout, Wanted(overlays=slow)).overlays == slow
    assert decide(layout, Wanted()).overlays == slow
    assert node_settings(layout)["commitlog_sync_period"] == "10000ms"


def test_a_stack_that_was_made_before_caches_could_be_chosen_has_small_ones(
    layout: Layout,
) -> None:
    decide(layout, Wanted(tables=TABLES))
    told = json.loads(layout.spec_file.read_text(encoding="utf-8"))
    del told["caches"]
    layout.spec_file.write_text(json.dumps(told), encoding="utf-8")
    assert decide(layout, Wanted()).caches == "small"


def node_settings(layout: Layout) -> dict[str, object]:
    """The node's configuration as it would start now; no setting stands there twice."""
    spec = load(layout)
    assert spec is not None
    CassandraNode(layout, spec).write_config()
    text = (layout.cassandra / "conf" / "cassandra.yaml").read_text(encoding="utf-8")
    names = [line.partition(":")[0] for line in text.splitlines() if line[:1].isalpha()]
    assert len(names) == len(set(names))
    settings: dict[str, object] = yaml.safe_load(text)
    return settings


def test_unreadable_options_are_one_line(layout: Layout) -> None:
    layout.spec_file.write_text("{", encoding="utf-8")
    with pytest.raises(MismatchError, match="not readable"):
        load(layout)


def test_settings_hold_credentials_only_with_authentication(tmp_path: Path) -> None:
    without = decide(Layout(tmp_path / "a"), Wanted(tables=TABLES))
    with_login = decide(Layout(tmp_path / "b"), Wanted(admin=ADMIN, tables=TABLES))
    assert "password" not in settings_file.render(Layout(tmp_path / "a"), without)
    assert 'password = "cassandra"' in settings_file.render(Layout(tmp_path / "b"), with_login)


def test_every_set_of_jars_has_a_profile_of_its_own() -> None:
    assert len({jars.fingerprint(name) for name in jars.SETS}) == len(jars.SETS)
    with pytest.raises(FetchError, match="no profile"):
        jars.fingerprint("nothing")


def test_another_version_is_another_fingerprint(tmp_path: Path) -> None:
    changed = tmp_path / "pom.xml"
    text = jars.POM.read_text(encoding="utf-8")
    assert "<kafka.version>4.1.2<" in text
    changed.write_text(text.replace("<kafka.version>4.1.2<", "<kafka.version>9<"), encoding="utf-8")
    assert jars.fingerprint("kafka", changed) != jars.fingerprint("kafka")
    assert jars.fingerprint("spark", changed) == jars.fingerprint("spark")


def test_missing_tools_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "JARS", tmp_path)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match="Java 17 is not installed"):
        jars.fetch(("kafka",))


def test_a_cluster_id_that_begins_with_a_dash_is_no_option(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's tool reads its arguments with a port of argparse."""
    given: list[str] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        given.extend(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(uuid, "uuid4", lambda: DASHED)
    monkeypatch.setattr(broker, "java", lambda: "java")
    monkeypatch.setattr(broker, "folder", lambda name: layout.root / name)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(Daemon, "start", lambda *_, **__: None)
    broker.Broker(layout, decide(layout, Wanted(tables=TABLES))).launch()
    tool = argparse.ArgumentParser(exit_on_error=False)
    tool.add_argument("--cluster-id", "-t")
    tool.add_argument("--config", "-c")
    read = tool.parse_args(given[given.index("format") + 1 :])
    assert read.cluster_id.startswith("-A")
    assert read.config == str(layout.kafka / "server.properties")
