"""A stack with TLS, logins and rights: each fault of a connection, and the product's work."""

import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session
from kafka import KafkaAdminClient
from kafka.admin import ScramMechanism, UserScramCredentialUpsertion

from deploy.embedded import ADMIN, Stack, jars
from deploy.embedded.agent import START
from deploy.embedded.certificates import Certificates
from deploy.embedded.kafka_clients import PASSWORD, SCRIPT, options, rights, set_password
from deploy.embedded.ports import free_ports
from deploy.embedded.spec import CassandraRelease
from deploy.embedded.wait import HANG_S
from reconcilers.words.errors import ReconcilerError, Refused, Rejected
from streaming.settings import Settings, load
from streaming.tables import open_session
from streaming.topics import Watcher
from tests.builders.tls import authority
from tests.endpoints import Endpoints
from tests.stack.embedded import wanted
from tests.stack.guarded import OWN, ROLE, prepare, session_of
from tests.stack.scenes import Place, cells, insertion, reconcile
from tests.stack.streams import Stream, until, write_settings

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def secure(release: CassandraRelease, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of the module's own, with everything on."""
    with Stack(tmp_path_factory.mktemp("secure"), wanted(release=release, secure=True)) as started:
        yield started


@pytest.fixture(scope="module")
def admin(secure: Stack) -> Iterator[Session]:
    """A driver session of Cassandra's own admin, which connects again."""
    with session_of(secure, ADMIN.username, ADMIN.password) as session:
        yield session


@pytest.fixture(scope="module")
def config(secure: Stack, admin: Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of the shipped role and of Kafka's user, whose passwords stand in files."""
    prepare(secure, admin)
    folder = tmp_path_factory.mktemp("settings")
    (folder / "cassandra.password").write_text(f"{ROLE[1]}\n")
    (folder / "kafka.password").write_text(f"{PASSWORD}\n")
    changes: dict[str, dict[str, Any]] = {
        "cassandra": {"username": ROLE[0], "password_file": str(folder / "cassandra.password")},
        "kafka": {
            "password_file": str(folder / "kafka.password"),
            "group": f"{OWN}.{secure.keyspace}",
        },
        "rights": {"truth": "eventstore"},
    }
    endpoints = Endpoints.of(secure.describe())
    return write_settings(folder / "reconcile.toml", endpoints, secure.keyspace, OWN, changes)


@pytest.fixture(scope="module")
def settings(config: Path) -> Settings:
    return load(config, {})


def changed(settings: Any, **more: Any) -> Any:
    """The same section with other values."""
    return type(settings).model_validate(settings.model_dump() | more)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Those of an authority that no server trusts."""
    return authority(tmp_path_factory.mktemp("other"))


PLAIN: dict[str, Any] = {
    "security_protocol": "PLAINTEXT",
    "username": None,
    "password_file": None,
    "tls_ca": None,
}
WRONG_PASSWORD = {"password_file": None, "password": "guessed"}
OF_KAFKA = [
    (PLAIN, r"speaks TLS, and kafka is set to connect without it"),
    ({"security_protocol": "SASL_PLAINTEXT", "tls_ca": None}, r"speaks TLS"),
    (PLAIN | {"security_protocol": "SSL", "tls_ca": "CA"}, r"asks for a login"),
    ({"bootstrap_servers": "127.0.0.1:CONTROLLER"}, r"does not speak TLS"),
    ({"tls_ca": "OTHER"}, r"has a certificate of no authority in kafka\.tls_ca"),
    ({"bootstrap_servers": "127.1:BROKER"}, r"has a certificate for other hosts"),
    (WRONG_PASSWORD, r"the login is refused"),
    (WRONG_PASSWORD | {"sasl_mechanism": "PLAIN"}, r"the login is refused"),
    ({"username": "nobody"}, r"the login is refused"),
    ({"bootstrap_servers": "127.0.0.1:1"}, r"cannot be reached: Connection refused"),
]


@pytest.mark.parametrize(("fault", "told"), OF_KAFKA)
def test_each_fault_of_a_connection_to_kafka_is_one_line_that_names_it(
    fault: dict[str, Any], told: str, settings: Settings, secure: Stack, other: Certificates
) -> None:
    ports = secure.spec.ports
    named = {
        "CONTROLLER": ports.controller,
        "BROKER": ports.broker,
        "OTHER": other.ca,
        "CA": settings.kafka.tls_ca,
    }
    given = {name: filled(each, named) for name, each in fault.items()}
    with pytest.raises(ReconcilerError, match=told) as failed:
        Watcher(changed(settings.kafka, **given)).close()
    assert "\n" not in str(failed.value)
    assert ends_a_start(failed.value, told)


def ends_a_start(failed: ReconcilerError, told: str) -> bool:
    """Whether it does, if and only if the server answers and says what is wrong."""
    waits = "cannot be reached" in told or "asks for a login" in told
    return isinstance(failed, Rejected | Refused) is not waits


def filled(value: Any, named: dict[str, Any]) -> Any:
    for name, each in named.items():
        value = str(value).replace(name, str(each)) if isinstance(value, str) else value
    return value


OF_CASSANDRA = [
    ({"tls": False, "tls_ca": None, "tls_certificate": None, "tls_key": None}, r"speaks TLS"),
    ({"port": "STORAGE"}, r"does not speak TLS"),
    ({"tls_ca": "OTHER"}, r"has a certificate of no authority in cassandra\.tls_ca"),
    ({"tls_certificate": None, "tls_key": None}, r"refuses our certificate"),
    ({"tls_certificate": "CERTIFICATE", "tls_key": "KEY"}, r"refuses our certificate"),
    (WRONG_PASSWORD, r"and/or password are incorrect"),
    ({"username": None}, r"[Aa]uthentication"),
    ({"port": 1}, r"cannot be reached: Connection refused"),
]


@pytest.mark.parametrize(("fault", "told"), OF_CASSANDRA)
def test_each_fault_of_a_connection_to_cassandra_is_one_line_that_names_it(
    fault: dict[str, Any], told: str, settings: Settings, secure: Stack, other: Certificates
) -> None:
    named = {
        "STORAGE": secure.spec.ports.cassandra_storage,
        "OTHER": other.ca,
        "CERTIFICATE": other.certificate("reconciler"),
        "KEY": other.key("reconciler"),
    }
    given = {name: filled(each, named) for name, each in fault.items()}
    with pytest.raises(ReconcilerError, match=told) as failed:
        open_session(changed(settings.cassandra, **given)).cluster.shutdown()
    assert "\n" not in str(failed.value)
    assert ends_a_start(failed.value, told)


# --- all of it at once ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stream(config: Path, secure: Stack) -> Iterator[Stream]:
    """A stream of the shipped role, whose doctor is content."""
    (config.parent / "admin.password").write_text(f"{ADMIN.password}\n")
    fix = ("--fix", "--admin-username", ADMIN.username, "--admin-password-file")
    run(config, "doctor", *fix, str(config.parent / "admin.password"))
    until("the agent is back", lambda: run(config, "doctor").returncode == 0)
    with Stream(config) as running:
        running.wait_until_watching()
        yield running
        assert running.stop() == 0


def run(config: Path, *words: str) -> Any:
    return reconcile(*words, "--config", str(config))


def succeed(config: Path, *words: str) -> str:
    answer = run(config, *words)
    assert answer.returncode == 0, f"{words}: {answer.stdout}{answer.stderr}"
    return str(answer.stdout)


class Mail:
    """Rows of messages, by the admin's session."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self._session, self._keyspace = session, keyspace

    def write_truth(self, place: Place) -> None:
        """A message that its projection does not have."""
        row = place.ids | cells()
        cql = insertion(f"{self._keyspace}.imapuidtable", row)
        self._session.execute(self._session.prepare(cql), list(row.values()))

    def lists(self, place: Place) -> bool:
        """Whether the projection has it."""
        cql = f"SELECT messageid FROM {self._keyspace}.messageidtable WHERE mailboxid=%s AND uid=%s"
        row = self._session.execute(cql, (place.mailboxid, place.uid)).one()
        return row is not None and row[0] == place.messageid


@pytest.fixture
def mail(admin: Session, secure: Stack) -> Mail:
    return Mail(admin, secure.keyspace)


def test_a_difference_is_repaired_and_a_sweep_and_a_replay_run(
    stream: Stream, mail: Mail, config: Path
) -> None:
    place = Place()
    mail.write_truth(place)
    until("it is repaired", lambda: mail.lists(place))
    until("it is verified", lambda: stream.findings(uid=1, mailboxid=place.mailboxid))
    swept = succeed(config, "sweep", "--reason", "everything is on")
    assert "message: 2 rows were compared, 0 suspects found" in swept
    assert "message" in succeed(config, "replay", "--from-time", "2026-01-01T00:00")
    assert "every change has been received since" in succeed(config, "status")
    assert (stream.died(), stream.said("the query died")) == (None, [])


HARD = 'p"a\\q${x}'
"""A password of characters that mean something to HOCON, JAAS and Java's properties."""


def make_logins(secure: Stack, admin: Session) -> None:
    """Of an agent, whose role has no right but to log in."""
    admin.execute("CREATE ROLE agent WITH LOGIN = true AND PASSWORD = %s", (HARD,))
    user = UserScramCredentialUpsertion("agent", ScramMechanism.SCRAM_SHA_512, HARD)
    granted = SCRIPT.read_text("utf-8").replace("User:CN=agent", "User:agent")
    with closing(KafkaAdminClient(**options(secure.spec))) as kafka:
        assert not any(kafka.alter_user_scram_credentials([user]).values())
        assert not kafka.create_acls(list(rights(granted)))["failed"]


def with_logins(secure: Stack, admin: Session, folder: Path) -> dict[str, str]:
    """The environment of an agent that logs in at both, by passwords in files, and has metrics."""
    given = secure.nodes[0].agent.environment(admin)
    (folder / "jars").mkdir()
    for each in (Path(given["AGENT_JARS"]), *jars.fetch(("agent-metrics",))):
        for jar in each.glob("*.jar"):
            (folder / "jars" / jar.name).symlink_to(jar)
    (folder / "password").write_text(f"{HARD}\n", encoding="utf-8")
    for name in ("CASSANDRA_PASSWORD", "KAFKA_CERTIFICATE"):
        del given[name]
    for server in ("CASSANDRA", "KAFKA"):
        given[f"{server}_USERNAME"] = "agent"
        given[f"{server}_PASSWORD_FILE"] = str(folder / "password")
    given["KAFKA_BOOTSTRAP_SERVERS"] = secure.bootstrap_servers
    given["AGENT_JARS"] = str(folder / "jars")
    given["AGENT_METRICS_PORT"] = str(next(free_ports()))
    return given


@pytest.mark.long(part="servers")
def test_an_agent_logs_in_with_passwords_that_are_hard_to_quote(
    stream: Stream, mail: Mail, secure: Stack, admin: Session, tmp_path: Path
) -> None:
    """As an operator starts it. Its metrics are served."""
    make_logins(secure, admin)
    given = with_logins(secure, admin, tmp_path)
    secure.kill_agent()
    place = Place()
    log = tmp_path / "agent.log"
    with (
        log.open("wb") as output,
        subprocess.Popen([str(START)], env=given, stdout=output, stderr=output) as agent,
    ):
        try:
            mail.write_truth(place)
            until("it is repaired", lambda: mail.lists(place))
            listed = ["ps", "-ww", "-o", "args=", "-p", str(agent.pid)]
            shown = subprocess.check_output(listed, text=True)
            url = f"http://127.0.0.1:{given['AGENT_METRICS_PORT']}/metrics"
            with urllib.request.urlopen(url, timeout=HANG_S) as reply:
                metrics = reply.read().decode()
        finally:
            agent.terminate()
    secure.start_agent()
    assert "CassandraConnectorTask" in shown
    assert HARD not in shown + log.read_text("utf-8")
    assert "\ndebezium_cassandra_connector_metrics_numberofprocessedmutations{" in metrics
    assert stream.died() is None


@pytest.mark.long(part="servers")
def test_a_stream_goes_on_with_other_certificates_and_passwords(
    stream: Stream, admin: Session, config: Path, secure: Stack
) -> None:
    """Of a new authority, and all at once: no old file opens a connection any more."""
    assert secure.spec.tls is not None
    replace_password(config, "cassandra", lambda new: set_role_password(admin, new))
    replace_password(config, "kafka", lambda new: set_kafka_password(secure, new))
    secure.nodes[0].kill()
    secure.kill_kafka()
    secure.spec.tls.certificates.renew()
    secure.start_kafka()
    secure.nodes[0].start()
    secure.capture_tables()
    place = Place()
    with session_of(secure, ADMIN.username, ADMIN.password) as again:
        mail = Mail(again, secure.keyspace)
        mail.write_truth(place)
        until("it is repaired", lambda: mail.lists(place))
    until("it is verified", lambda: stream.findings(uid=1, mailboxid=place.mailboxid))
    assert stream.died() is None


def replace_password(config: Path, server: str, change: Callable[[str], None]) -> None:
    """At the server first, as the page says."""
    new = f"another-{server}"
    change(new)
    (config.parent / f"{server}.password").write_text(f"{new}\n")


def set_role_password(admin: Session, new: str) -> None:
    admin.execute(f"ALTER ROLE {ROLE[0]} WITH PASSWORD = '{new}'")


def set_kafka_password(secure: Stack, new: str) -> None:
    with closing(KafkaAdminClient(**options(secure.spec))) as admin:
        for each in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            set_password(admin, each, new)


def test_nothing_secret_is_logged_or_shown(stream: Stream, config: Path) -> None:
    files = [config.parent / f"{server}.password" for server in ("cassandra", "kafka")]
    secrets = [each.read_text().strip() for each in files]
    told = stream.log.read_text() + succeed(config, "config", "show")
    assert [each for each in secrets if each in told] == []
