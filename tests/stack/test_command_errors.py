"""What cannot be done is told in one clear line on standard error, and by its exit code."""

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from checkpoints.bookmarks import Bookmark
from checkpoints.cassandra import CassandraBookmarks, Store, create_schema
from reconcilers.words.exit_codes import ExitCode
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode, load
from tests.endpoints import Endpoints
from tests.sessions import create_keyspace
from tests.stack.scenes import Answer, Scene, reconcile
from tests.stack.streams import PATIENCE, write_settings

pytestmark = pytest.mark.stack


def line_of(failed: Answer, code: ExitCode = ExitCode.USAGE) -> str:
    """The one line; the log may stand before it, nothing after it."""
    assert failed.returncode == code, failed.stderr
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
        ("[stream]\ndelay = 'soon'", "[stream] delay is "),
        ("[stream]\ndelay = -1", "[stream] delay is "),
        ("[stream]\ndelay = 3\nwindow = 5", "stream.window must not be longer than stream.delay"),
        ("[cassandra]\nport = 99999", "[cassandra] port is 99999, and must be: whole number"),
        ("[cassandra]\nhots = ['a']", "[cassandra] hots is no setting: did you mean hosts?"),
        ("[casandra]\nport = 1", "[casandra] is no section: did you mean cassandra?"),
        (
            "[repair]\nsuspect_share = 2.0",
            "[repair] suspect_share is 2.0, and must be: number, > 0, ≤ 1",
        ),
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


MAILBOX = "00000000-0000-11f1-ae92-02fc00000001"
OWN_KEYSPACE = (
    "status",
    "report",
    "findings",
    f"findings --undo {MAILBOX}/1 --system messages",
    f"findings --release {MAILBOX}/1",
    "pause",
    "pause --list",
    "resume",
    "pilot",
    "pilot --user ann@example.org",
    "sweep",
    "sweep --resume",
    "replay --from-time 2026-01-01",
    "replay --bookmark before",
    "bookmark before",
    "bookmark --list",
    "explain ann@example.org",
    f"explain {MAILBOX} 7",
)
"""What reads or writes our own keyspace, as the stream has made it."""
OTHERS = (*sorted({*OWN_KEYSPACE} - {"findings", "resume", "sweep"}), "lwt-report")
SHOWS = (
    "status",
    "report",
    "findings",
    "pause --list",
    "pilot",
    "bookmark --list",
    "lwt-report --interval 1s",
)
"""What tells something, also of an installation where nothing has happened."""
BARE = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONIOENCODING": "ascii",
    "HOME": "/nonexistent",
    "PYTHONPATH": os.pathsep.join(sys.path),
}
"""An environment without UTF-8 and without a home."""


@pytest.mark.parametrize("command", ["findings", "resume", "sweep"])
def test_an_unreachable_cassandra_is_told_with_its_address(settings: Any, command: str) -> None:
    asked_in_vain(settings, [command])


@pytest.mark.long(part="commands")
@pytest.mark.parametrize("command", [each.split() for each in OTHERS])
def test_so_it_is_by_every_other_command(settings: Any, command: list[str]) -> None:
    asked_in_vain(settings, command)


def asked_in_vain(settings: Any, command: list[str]) -> None:
    """The command, where no Cassandra is at the port of its settings."""
    port = free_port()
    config = settings(cassandra={"port": port})
    told = line_of(reconcile(*command, "--config", str(config)), ExitCode.UNREACHABLE)
    assert "connecting to Cassandra at 127.0.0.1" in told
    assert str(port) in told


@pytest.mark.parametrize(
    ("command", "server"),
    [
        ("stream", "cassandra"),
        pytest.param("stream", "kafka", marks=pytest.mark.long(part="commands")),
        ("canary", "cassandra"),
    ],
)
def test_what_runs_on_waits_for_a_server_that_is_away(
    settings: Any, command: str, server: str
) -> None:
    """Until it is told to stop."""
    port = free_port()
    changes = {"cassandra": {"port": port}, "kafka": {"bootstrap_servers": f"127.0.0.1:{port}"}}
    config = settings(**{server: changes[server]})
    words = [sys.executable, "-m", "streaming.app", command, "--config", str(config)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as begun:
        assert begun.stderr is not None
        told = next(line for line in begun.stderr if "waiting for a server: " in line)
        begun.terminate()
        begun.stderr.read()
    assert begun.returncode == ExitCode.DONE
    assert str(port) in told


@pytest.fixture(scope="module")
def own(cassandra: Session) -> Iterator[str]:
    """Our own keyspace, with all its tables and nothing in them."""
    name = f"errors_{uuid.uuid4().hex[:8]}"
    create_schema(cassandra, name)
    yield name
    cassandra.execute(f"DROP KEYSPACE {name}")


@pytest.mark.parametrize(
    "command",
    [
        "sweep --mode repair",
        pytest.param(
            "replay --mode repair --from-time 2026-01-01", marks=pytest.mark.long(part="commands")
        ),
    ],
)
def test_a_command_that_needs_kafka_tells_its_address(
    settings: Any, own: str, command: str
) -> None:
    address = f"127.0.0.1:{free_port()}"
    ours = {"cassandra": {"own_keyspace": own}, "kafka": {"bootstrap_servers": address}}
    failed = reconcile(*command.split(), "--config", str(settings(**ours)))
    told = line_of(failed, ExitCode.UNREACHABLE)
    assert f"no Kafka broker answers at {address}" in told


# --- tables, topics


@pytest.mark.long(part="commands")
def test_a_keyspace_that_is_not_there_is_told(settings: Any) -> None:
    config = settings(cassandra={"keyspace": "nowhere"})
    told = line_of(reconcile("stream", "--config", str(config)))
    assert "imapuidtable does not exist" in told


@pytest.mark.long(part="commands")
@pytest.mark.parametrize("command", [each.split() for each in OWN_KEYSPACE])
def test_a_keyspace_of_ours_that_is_not_there_is_told(settings: Any, command: list[str]) -> None:
    config = settings()
    told = line_of(reconcile(*command, "--config", str(config)))
    assert "lacks step 1" in told
    assert "start `reconcile stream` once" in told


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("sweep", "imapuidtable does not exist"),
        ("replay --from-time 2026-01-01", "imapuidtable does not exist"),
        (f"explain {MAILBOX} 7", "imapuidtable does not exist"),
        (f"findings --undo {MAILBOX}/1 --system messages", "imapuidtable does not exist"),
        ("lwt-report", "there is no keyspace nowhere"),
    ],
)
def test_a_command_that_needs_james_s_tables_tells_that_they_are_not_there(
    settings: Any, own: str, command: str, told: str
) -> None:
    config = settings(cassandra={"keyspace": "nowhere", "own_keyspace": own})
    assert told in line_of(reconcile(*command.split(), "--config", str(config)))


@pytest.mark.long(part="commands")
def test_a_missing_projection_table_is_named(
    settings: Any, cassandra: Session, mail_keyspace: str
) -> None:
    half = f"half_{uuid.uuid4().hex[:8]}"
    create_keyspace(cassandra, half)
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


def test_an_own_keyspace_with_fewer_copies_than_james_s_is_refused(
    settings: Any, cassandra: Session
) -> None:
    safer, own = (f"{each}_{uuid.uuid4().hex[:8]}" for each in ("safer", "single"))
    create_keyspace(cassandra, safer)
    create_schema(cassandra, own)  # the first command takes it
    two = "{'class': 'SimpleStrategy', 'replication_factor': 2}"
    cassandra.execute(f"ALTER KEYSPACE {safer} WITH replication = {two}")
    config = settings(cassandra={"keyspace": safer, "own_keyspace": own})
    command = ("stream", "--config", str(config), "--mode")
    try:
        refused = line_of(reconcile(*command, "repair"))
        observed = line_of(reconcile(*command, "observe"))
    finally:
        for each in (safer, own):
            cassandra.execute(f"DROP KEYSPACE {each}")
    assert f"not in repair mode: keyspace {own} has copies: 1, and {safer} has 2" in refused
    assert "imapuidtable does not exist" in observed


def test_the_agents_topic_that_is_missing_is_named(settings: Any) -> None:
    config = settings(kafka={"topic_prefix": "nobody"})
    told = line_of(reconcile("stream", "--config", str(config)))
    assert "topic nobody does not exist" in told


# --- checkpoint, lease


@pytest.mark.long(part="commands")
def test_a_folder_that_cannot_be_made_is_one_line(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("", encoding="utf-8")
    config = settings(stream={"checkpoint_dir": str(tmp_path / "a file" / "below")})
    failed = reconcile("stream", "--mode", "repair", "--config", str(config))
    assert failed.returncode == 2, failed.stderr
    (line,) = [each for each in failed.stderr.splitlines() if each.startswith("reconcile: ")]
    assert line.startswith("reconcile: stream.checkpoint_dir "), failed.stderr  # Spark talks, too


def test_a_second_stream_in_repair_mode_is_refused(scene: Scene) -> None:
    told = line_of(scene.command("stream", "--mode", "repair"), ExitCode.REFUSED)
    assert "another" in told
    assert scene.stream.died() is None


# --- arguments, names


@pytest.mark.long(part="commands")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("sweep --rate 0", "is not a whole number above 0"),
        ("sweep --rate fast", "is not a whole number above 0"),
        ("sweep --mode look", "invalid choice: 'look'"),
        ("sweep --systems mesages", "did you mean messages?"),
        ("replay", "is required"),
        ("replay --from-time noon", "is no time as"),
        ("replay --bookmark a --from-time 2026-01-01", "not allowed with"),
        ("sweep", "no stream runs: say which one gets what is found, --mode observe or"),
        ("replay --mode repair --bookmark befor", "did you mean before?"),
        ("bookmark", "is required"),
        ("bookmark --delete befor", "did you mean before?"),
        ("explain", "the following arguments are required"),
        ("explain nobody@example.org", "no mailbox is named as one of user"),
        ("pilot --system mesages", "did you mean messages?"),
        ("pilot --kind missing-row", "did you mean missing_row?"),
        ("pilot --mailbox x", "is not a mailbox id"),
        ("pilot --end --user ann", "--end ends the whole pilot"),
        ("pause mesages", "did you mean messages?"),
        ("pause --for 2x", "is no duration as"),
        ("pause --until 2020-01-01", "the time of --until is over"),
        ("resume --pause mesages", "did you mean messages?"),
        ("lwt-report --interval soon", "is no duration as"),
        ("lwt-report --jmx here", "is no place as"),
        ("findings --undo 7", "is not"),
        ("findings --undo", "name"),
        ("findings --undo --release", "not allowed with"),
        ("findings --system mesages", "did you mean messages?"),
        ("findings --state stuk", "did you mean stuck?"),
        ("findings --user nobody@example.org", "no mailbox path is theirs"),
        ("sweeep", "invalid choice: 'sweeep' (choose from 'stream', 'sweep'"),
    ],
)
def test_a_wrong_argument_or_name_is_told_in_the_last_line(
    settings: Any, own: str, cassandra: Session, command: str, told: str
) -> None:
    config = settings(cassandra={"own_keyspace": own})
    name_a_bookmark(Store(cassandra, own), config, "before")
    failed = reconcile(*command.split(), "--config", str(config))
    assert failed.returncode == 2, failed.stdout + failed.stderr
    assert told in failed.stderr.strip().splitlines()[-1], failed.stderr
    assert "Traceback" not in failed.stderr


def name_a_bookmark(store: Store, config: Path, name: str) -> None:
    """As `reconcile bookmark` does when a stream has settled something."""
    found = load(config, {})
    stream = StreamNames.of(found, Mode.REPAIR).bookmarks(found.families()[0])
    CassandraBookmarks(store).name(Bookmark(stream, {}), name)


# --- who reads it


@pytest.mark.long(part="commands")
@pytest.mark.parametrize("command", [each.split() for each in SHOWS])
def test_a_reader_that_has_gone_is_no_error(settings: Any, own: str, command: list[str]) -> None:
    config = settings(cassandra={"own_keyspace": own})
    reads, writes = os.pipe()
    os.close(reads)
    ended = shown(config, command, stdout=writes)
    os.close(writes)
    assert ended.returncode == ExitCode.NOBODY_READS, ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.long(part="commands")
@pytest.mark.parametrize("command", [each.split() for each in SHOWS])
def test_without_utf_8_a_home_or_a_folder_to_write_in_it_shows_what_it_can(
    settings: Any, own: str, command: list[str]
) -> None:
    config = settings(cassandra={"own_keyspace": own})
    ended = shown(config, command, stdout=subprocess.PIPE)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.isascii()
    assert ended.stdout.strip()


def shown(config: Path, command: list[str], stdout: int) -> Answer:
    """The command with this output, in `BARE`, in a folder where not even root can write."""
    return subprocess.run(
        [sys.executable, "-m", "streaming.app", *command, "--config", str(config)],
        cwd="/proc",
        env={**os.environ, **BARE},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
