"""What cannot be done is told in one clear line on standard error, and by exit code 2."""

import socket
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from tests.endpoints import Endpoints
from tests.stack.scenes import Scene, reconcile
from tests.stack.streams import write_settings

pytestmark = pytest.mark.stack


def line_of(failed: subprocess.CompletedProcess[str]) -> str:
    """The one line; the log may stand before it, nothing after it."""
    assert failed.returncode == 2, failed.stderr
    lines = failed.stderr.strip().splitlines()
    ours = [line for line in lines if not line.startswith("{")]
    assert ours == [lines[-1]], failed.stderr
    assert ours[0].startswith("reconcile: "), failed.stderr
    return ours[0]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def settings(stack: Endpoints, mail_keyspace: str, tmp_path: Path) -> Any:
    """Makes a settings file for this stack with some changes."""

    def make(**changes: dict[str, Any]) -> Path:
        own = f"errors_{uuid.uuid4().hex[:8]}"
        return write_settings(tmp_path / "reconcile.toml", stack, mail_keyspace, own, changes)

    return make


# --- settings


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[stream]\ndelay = 'soon'", "setting stream.delay: "),
        ("[stream]\ndelay = -1", "setting stream.delay: "),
        ("[stream]\ndelay = 3\nwindow = 5", "stream.window must not be longer than stream.delay"),
        ("[cassandra]\nport = 99999", "setting cassandra.port: "),
        ("[cassandra]\nhots = ['a']", "setting cassandra.hots: "),
        ("[casandra]\nport = 1", "setting casandra: "),
        ("[repair]\nsuspect_share = 2.0", "setting repair.suspect_share: "),
        ("port = ", "is not TOML"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, text: str, told: str) -> None:
    config = tmp_path / "reconcile.toml"
    config.write_text(text, encoding="utf-8")
    assert told in line_of(reconcile("stream", "--config", str(config)))


def test_a_settings_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    config = tmp_path / "nowhere.toml"
    assert str(config) in line_of(reconcile("stream", "--config", str(config)))


# --- servers


COMMANDS = (
    "stream",
    "findings",
    "resume",
    "sweep",
    "replay --from-time 2026-01-01",
    "bookmark --list",
    "explain ann@example.org",
    "lwt-report",
)


@pytest.mark.parametrize("command", [each.split() for each in COMMANDS])
def test_an_unreachable_cassandra_is_told_with_its_address(
    settings: Any, command: list[str]
) -> None:
    port = free_port()
    config = settings(cassandra={"port": port})
    told = line_of(reconcile(*command, "--config", str(config)))
    assert "connecting to Cassandra at 127.0.0.1" in told
    assert str(port) in told


def test_an_unreachable_kafka_is_told_with_its_address(settings: Any, cassandra: Session) -> None:
    address = f"127.0.0.1:{free_port()}"
    config = settings(kafka={"bootstrap_servers": address})
    told = line_of(reconcile("stream", "--config", str(config)))
    assert f"no Kafka broker answers at {address}" in told


# --- tables, topics


def test_a_keyspace_that_is_not_there_is_told(settings: Any) -> None:
    config = settings(cassandra={"keyspace": "nowhere"})
    told = line_of(reconcile("stream", "--config", str(config)))
    assert "imapuidtable does not exist" in told


def test_a_missing_projection_table_is_named(
    settings: Any, cassandra: Session, mail_keyspace: str
) -> None:
    half = f"half_{uuid.uuid4().hex[:8]}"
    cassandra.execute(
        f"CREATE KEYSPACE {half} WITH replication ="
        " {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    cassandra.execute(
        f"CREATE TABLE {half}.imapuidtable (messageid timeuuid, mailboxid timeuuid, uid bigint,"
        " PRIMARY KEY (messageid, mailboxid, uid))"
    )
    try:
        config = settings(cassandra={"keyspace": half})
        told = line_of(reconcile("stream", "--config", str(config)))
    finally:
        cassandra.execute(f"DROP KEYSPACE {half}")
    assert "messageidtable does not exist" in told


def test_the_agents_topic_that_is_missing_is_named(settings: Any) -> None:
    config = settings(kafka={"topic_prefix": "nobody"})
    told = line_of(reconcile("stream", "--config", str(config)))
    assert "topic nobody does not exist" in told


# --- checkpoint, lease


def test_a_folder_that_cannot_be_made_is_one_line(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("", encoding="utf-8")
    config = settings(stream={"checkpoint_dir": str(tmp_path / "a file" / "below")})
    failed = reconcile("stream", "--mode", "repair", "--config", str(config))
    assert failed.returncode == 2, failed.stderr
    line = failed.stderr.strip().splitlines()[-1]  # after what Spark says when it starts
    assert line.startswith("reconcile: stream.checkpoint_dir "), failed.stderr


def test_a_second_stream_in_repair_mode_is_refused(scene: Scene) -> None:
    told = line_of(scene.command("stream", "--mode", "repair"))
    assert "another" in told
    assert scene.stream.died() is None
