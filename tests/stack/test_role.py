"""The shipped role on a Cassandra that checks rights: enough for the product, nothing more."""

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cassandra import InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthenticator
from cassandra.cluster import NoHostAvailable, Session
from cassandra.connection import ConnectionShutdown

from checkpoints.cassandra import CassandraJournal, CassandraLease, Store
from checkpoints.lease import Holder, Lease
from deploy import roles
from deploy.embedded import ADMIN, Stack
from deploy.mailserver import james
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.projections import MESSAGE_PROJECTIONS
from reconcilers.rows.finding import State
from reconcilers.words.errors import Refused, Unreachable
from reconcilers.words.exit_codes import ExitCode
from streaming import app
from streaming.commands.lwt.jvm import Jvm
from streaming.settings import Settings, load
from streaming.tables import connect, disconnect, open_session
from tests.contract.making import a_finding, a_slot
from tests.endpoints import Endpoints
from tests.stack.attached import TABLES as ATTACHMENTS
from tests.stack.guarded import LOGIN, OWN, session_of
from tests.stack.scenes import Answer, reconcile
from tests.stack.streams import until, write_settings

pytestmark = pytest.mark.stack

EVERYTHING: Mapping[str, Mapping[str, Any]] = {
    "repair": {"projections": [each.name for each in MESSAGE_PROJECTIONS]},
    "tally": {"projections": ["mailbox_counters", "current_quota"], "max_update_lag": 2},
    "rights": {"truth": "eventstore"},
    "attachments": {"tables": ATTACHMENTS},
    "mailboxes": {"watch": True},
}
"""What switches on all that the role is for."""


@pytest.fixture(scope="module")
def endpoints(guarded: Stack) -> Endpoints:
    return Endpoints.of(guarded.describe())


@pytest.fixture(scope="module")
def config(
    endpoints: Endpoints, admin: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The settings of an installation that followed roles.cql, with doctor's fixes carried out."""
    keyspace, folder = endpoints.keyspace, tmp_path_factory.mktemp("role")
    james.create_schema(admin, keyspace)
    for statement in roles.statements(with_grants_of=()):
        admin.execute(statement)
    changes = {**LOGIN, **EVERYTHING}
    file = write_settings(folder / "reconcile.toml", endpoints, keyspace, OWN, changes)
    (folder / "password").write_text(f"{ADMIN.password}\n")
    fix = ("--fix", "--admin-username", ADMIN.username, "--admin-password-file")
    doctor(file, *fix, str(folder / "password"))
    yield file
    disconnect(load(file, {}).cassandra)


def doctor(file: Path, *argv: str) -> int:
    arguments = app.parsed(["doctor", *argv, "--config", str(file)])
    return int(arguments.run(load(file, {}), arguments))


@pytest.fixture(scope="module")
def settings(config: Path) -> Settings:
    return load(config, {})


def test_doctor_is_content_with_the_shipped_role(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    until("the agent is back", lambda: doctor(config) == 0)
    said = capsys.readouterr().out
    assert "role reconciler has the rights it needs and none on a truth table" in said
    assert "keyspace reconciler has the tables of this version" in said


def test_doctor_is_content_with_it_where_little_is_switched_on(
    config: Path, endpoints: Endpoints
) -> None:
    path = config.with_name("little.toml")
    write_settings(path, endpoints, endpoints.keyspace, OWN, LOGIN)
    until("the agent is back", lambda: doctor(path) == 0)


def test_a_right_that_only_a_counter_needs_is_missed_where_it_is_switched_on(
    config: Path, admin: Session, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    table = f"{settings.cassandra.keyspace}.mailboxcounters"
    with revoked(admin, f"MODIFY ON TABLE {table}"):
        assert doctor(config) == 1
    assert f"role reconciler lacks MODIFY on table {table}" in capsys.readouterr().out


def test_the_role_can_keep_the_journal_and_the_lease(settings: Settings) -> None:
    store = Store(connect(settings.cassandra), settings.cassandra.own_keyspace)
    journal = CassandraJournal(store)
    finding = a_finding(MESSAGE, a_slot())
    journal.put(finding)
    assert list(journal.open_findings(MESSAGE)) == [finding]
    journal.close(finding, State.VERIFIED, 1_800_000_000_000_000)
    lease = Lease(CassandraLease(store), "role", Holder("a", "here"))
    lease.acquire()
    assert lease.holds()
    lease.release()


def test_the_role_may_repair_what_is_repaired_only(settings: Settings) -> None:
    session, mail = connect(settings.cassandra), settings.cassandra.keyspace
    slot = (uuid.uuid1(), 1)
    for table, uid in (
        ("messageidtable", "uid"),
        ("messagedeleted", "uid"),
        ("firstunseen", "uid"),
        ("mailboxrecents", "recent_mesage_uid"),
    ):
        session.execute(f"DELETE FROM {mail}.{table} WHERE mailboxid = %s AND {uid} = %s", slot)
    for change in (
        f"{mail}.applicableflag SET userflags = userflags + {{'a'}} WHERE mailboxid = {slot[0]}",
        f"{mail}.mailboxcounters SET count = count + 0 WHERE mailboxid = {slot[0]}",
        f"{mail}.currentquota SET storage = storage + 0 WHERE quotaroot = '#private&nobody'",
        f"{mail}.usermailboxacl SET rights = 'l' WHERE username = 'ana' AND mailboxid = {slot[0]}",
        f"{mail}.aclv2 SET rights = rights - {{'l'}} WHERE id = {slot[0]} AND key = 'ana'",
        f"{mail}.attachmentv2 SET message_id = {slot[0]} WHERE idasuuid = {slot[0]}",
        f"{mail}.attachmentmessageid SET attachmentid = 'a' WHERE attachmentidasuuid = {slot[0]}"
        f" AND messageid = '{slot[0]}'",
    ):
        session.execute(f"UPDATE {change}")
    refused = (
        f"UPDATE {mail}.mailbox SET name = 'x' WHERE id = {slot[0]}",
        f"DELETE FROM {mail}.mailboxpathv3 WHERE namespace = 'a' AND user = 'b'",
        f"DELETE FROM {mail}.imapuidtable WHERE messageid = {slot[0]}",
        f"TRUNCATE {mail}.imapuidtable",
        f"TRUNCATE {mail}.messagecounter",
        f"DELETE FROM {mail}.eventstore WHERE aggregateid = 'a'",
        f"DELETE FROM {mail}.messagev3 WHERE messageid = {slot[0]}",
        f"DELETE FROM {mail}.messagev2 WHERE messageid = {slot[0]}",
        f"DELETE FROM {mail}.attachmentowners WHERE id = {slot[0]}",
        f"UPDATE {mail}.modseq SET nextmodseq = 1 WHERE mailboxid = {slot[0]}",
        f"ALTER TABLE {mail}.messageidtable WITH cdc = false",
        f"DROP TABLE {mail}.messageidtable",
    )
    for statement in refused:
        with pytest.raises(Unauthorized):
            session.execute(statement)


def test_a_right_too_many_is_told(
    config: Path, admin: Session, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = f"{settings.cassandra.keyspace}.imapuidtable"
    admin.execute(f"GRANT MODIFY ON TABLE {truth} TO reconciler")
    try:
        doctor(config)
    finally:
        admin.execute(f"REVOKE MODIFY ON TABLE {truth} FROM reconciler")
    assert "warning  role reconciler may write imapuidtable" in capsys.readouterr().out


def test_a_wrong_password_is_a_problem(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = config.with_name("wrong.toml")
    wrong.write_text(config.read_text().replace("change-me", "guessed"))
    assert doctor(wrong) == 1
    said = capsys.readouterr().out
    assert "problem  connecting to Cassandra" in said
    assert "password" in said


def test_a_node_that_refuses_a_login_for_a_while_is_tried_again(
    admin: Session, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_session(settings.cassandra)
    try:
        with no_login(admin, settings):
            for holder in session.cluster.get_connection_holders():
                for connection in holder.get_connections():
                    connection.defunct(ConnectionShutdown("the node went away"))
            until("its connections are lost", lambda: not answered(session))
            logins = count_logins(monkeypatch)
            until("it was refused several times", lambda: len(logins) > 3)
        until("it is back", lambda: answered(session))
    finally:
        session.cluster.shutdown()


def count_logins(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One more with each login that this process tries from now on."""
    found: list[str] = []
    first = PlainTextAuthenticator.initial_response

    def counted(login: PlainTextAuthenticator) -> bytes:
        found.append(login.username)
        return bytes(first(login))

    monkeypatch.setattr(PlainTextAuthenticator, "initial_response", counted)
    return found


@contextmanager
def no_login(admin: Session, settings: Settings) -> Iterator[None]:
    """Meanwhile the role may not log in, as at a node that cannot read the roles yet."""
    admin.execute("ALTER ROLE reconciler WITH LOGIN = false")
    try:
        until("it is refused", lambda: not may_log_in(settings))
        yield
    finally:
        admin.execute("ALTER ROLE reconciler WITH LOGIN = true")


def may_log_in(settings: Settings) -> bool:
    try:
        session = open_session(settings.cassandra)
    except (Refused, Unreachable):  # at the first connection, or at the next
        return False
    session.cluster.shutdown()
    return True


def answered(session: Session) -> bool:
    try:
        return bool(session.execute("SELECT key FROM system.local").one())
    except NoHostAvailable:
        return False


def test_the_report_on_lightweight_transactions_names_the_right_that_is_missing(
    config: Path, admin: Session
) -> None:
    command = ("lwt-report", "--config", str(config), "--interval", "1s", "--format", "jsonl")
    done = reconcile(*command)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["not_known"] == []
    history = "SELECT ON TABLE system.compaction_history"
    with revoked(admin, history):
        missing = f"compactions: GRANT {history} TO reconciler"
        until("it is said", lambda: missing in reconcile(*command).stdout)
    views = "SELECT ON KEYSPACE system_views"
    with revoked(admin, views):
        refused = until("it is refused", lambda: refusal(reconcile(*command)))
    assert refused.endswith(f"GRANT {views} TO reconciler (deploy/cassandra/roles.cql)")


def test_only_its_own_role_may_fix_mailbox_objects(
    config: Path, endpoints: Endpoints, admin: Session
) -> None:
    keyspace, mailboxid = endpoints.keyspace, uuid.uuid1()
    admin.execute(
        f"INSERT INTO {keyspace}.mailboxpathv3 (namespace, user, mailboxname, mailboxid,"
        f" uidvalidity) VALUES ('#private', 'ana', 'orphan', {mailboxid}, 7) IF NOT EXISTS"
    )
    short: dict[str, Any] = {"stream": {"delay": 1, "window": 1}}
    changes = {**LOGIN, **short, "mailboxes": {"right": "path"}}
    path = write_settings(config.with_name("fix.toml"), endpoints, keyspace, OWN, changes)
    config.with_name("fix-password").write_text("of-the-fix\n")
    admin.execute("ALTER ROLE reconciler_mailboxes WITH LOGIN = true AND PASSWORD = 'of-the-fix'")
    words = ("--fix", "--confirm", "ALL-SERVICES-ARE-OFFLINE", "--ignore-traffic")
    command = ("mailboxes", "--config", str(path), *words)
    assert "no MODIFY permission on <table" in refusal(reconcile(*command))
    login = ("--username", "reconciler_mailboxes", "--password-file")
    done = reconcile(*command, *login, str(config.with_name("fix-password")))
    assert done.returncode == 0, done.stderr
    (row,) = admin.execute(f"SELECT name FROM {keyspace}.mailbox WHERE id = {mailboxid}")
    assert tuple(row) == ("orphan",)
    admin.execute(f"DELETE FROM {keyspace}.mailbox WHERE id = {mailboxid}")
    admin.execute(f"TRUNCATE {keyspace}.mailboxpathv3")


def refusal(done: Answer) -> str:
    """What a command that could not be done says; empty for one that was."""
    return done.stderr.splitlines()[-1] if done.returncode == ExitCode.REFUSED else ""


GUARDRAILS = [
    ("UserTimestampsEnabled", False, "user_timestamps_enabled: false"),
    ("ReadConsistencyLevelsDisallowedCSV", "SERIAL", "read_consistency_levels_disallowed: SERIAL"),
]


@pytest.mark.parametrize(("attribute", "value", "named"), GUARDRAILS)
def test_a_guardrail_is_named_by_doctor_and_no_process_begins_that_it_would_stop(
    guarded: Stack,
    config: Path,
    capsys: pytest.CaptureFixture[str],
    attribute: str,
    value: object,
    named: str,
) -> None:
    violated = re.sub("_(enabled|disallowed):.*", "", named)
    until("the agent is back", lambda: doctor(config) == 0)
    assert "no guardrail of 127.0.0.1 refuses our statements" in capsys.readouterr().out
    with guardrail(guarded, attribute, value):
        assert doctor(config) == 1
        assert f"problem  127.0.0.1 has {named}" in capsys.readouterr().out
        for command in (("stream", "--mode", "repair"), ("canary",)):
            done = reconcile(*command, "--config", str(config))
            assert f"Guardrail {violated} violated" in refusal(done), done.stderr


def test_a_refused_write_time_is_told_with_the_setting_that_allows_it(
    guarded: Stack, config: Path
) -> None:
    with guardrail(guarded, "UserTimestampsEnabled", False):
        done = reconcile("canary", "--config", str(config))
    assert "set user_timestamps_enabled: true" in refusal(done), done.stderr


def test_the_history_of_a_finding_is_refused_where_doctor_says_so(
    guarded: Stack, config: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cassandra checks it if the keyspace has several copies; a read of one copy is allowed."""
    own = settings.cassandra.own_keyspace
    journal, slot = CassandraJournal(Store(connect(settings.cassandra), own)), a_slot()
    with guardrail(guarded, "IntersectFilteringQueryEnabled", False):
        assert doctor(config) == 1
        assert "has intersect_filtering_query_enabled: false" in capsys.readouterr().out
        with two_copies(guarded, own), pytest.raises(Refused, match="intersect_filtering_query"):
            list(journal.history(MESSAGE, MESSAGE.listing.name, slot))


def test_a_read_of_too_many_partitions_is_named_by_doctor(
    guarded: Stack, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with threshold(guarded, "PartitionKeysInSelect", 20):
        assert doctor(config) == 1
    said = capsys.readouterr().out
    assert "partition_keys_in_select_fail_threshold: 20, but up to 100 are asked for" in said


@pytest.mark.long(part="servers")
def test_a_keyspace_that_too_many_copies_are_asked_of_is_made_by_a_superuser(
    guarded: Stack, config: Path, admin: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    with copies_by_default(guarded, 3), threshold(guarded, "MinimumReplicationFactor", 3):
        until("the agent is back", lambda: doctor(config) == 0)
        assert REFUSES_COPIES not in capsys.readouterr().out
        dropped(admin)
        assert doctor(config) == 1
        assert REFUSES_COPIES in capsys.readouterr().out
        made_by_admin(config)
    until("the agent has its table", lambda: doctor(config) == 0)


@pytest.mark.long(part="servers")
def test_a_keyspace_whose_strategy_is_refused_is_made_by_a_superuser(
    guarded: Stack,
    config: Path,
    admin: Session,
    release: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if release == "4.1":
        pytest.skip("this Cassandra has no such guardrail")
    with guardrail(guarded, "SimpleStrategyEnabled", False):
        dropped(admin)
        assert doctor(config) == 1
        assert "problem  127.0.0.1 has simplestrategy_enabled: false" in capsys.readouterr().out
        made_by_admin(config)
    until("the agent has its table", lambda: doctor(config) == 0)


REFUSES_COPIES = (
    "problem  127.0.0.1 has minimum_replication_factor_fail_threshold: 3, but keyspace"
    " reconciler_canary is made with 1"
)


def dropped(admin: Session) -> None:
    """The canaries' keyspace is dropped; a moment later Cassandra drops the rights on it."""
    admin.execute("DROP KEYSPACE reconciler_canary")
    rights = "LIST ALL PERMISSIONS ON KEYSPACE reconciler_canary OF reconciler"

    def gone() -> bool:
        try:
            return not [each for each in admin.execute(rights) if "canary" in each["resource"]]
        except InvalidRequest:
            return True

    until("the rights on it are gone", gone)


def made_by_admin(config: Path) -> None:
    """What doctor finds missing is made, and the role has its rights on it."""
    fix = ("--fix", "--admin-username", ADMIN.username, "--admin-password-file")
    doctor(config, *fix, str(config.with_name("password")))


@contextmanager
def two_copies(stack: Stack, keyspace: str) -> Iterator[None]:
    """Meanwhile a keyspace has two copies of each row, though there is one node."""
    change = f"ALTER KEYSPACE {keyspace} WITH replication = "
    simple = "{'class': 'SimpleStrategy', 'replication_factor': %d}"
    with session_of(stack, ADMIN.username, ADMIN.password) as admin:
        admin.execute(change + simple % 2)
        try:
            yield
        finally:
            admin.execute(change + simple % 1)


@contextmanager
def guardrail(stack: Stack, attribute: str, value: object) -> Iterator[None]:
    """Meanwhile the node has this guardrail."""
    with has(stack, "Guardrails", attribute, value):
        yield


@contextmanager
def threshold(stack: Stack, name: str, fails: int) -> Iterator[None]:
    """Meanwhile the node has this threshold, beyond which a statement fails."""
    with bean_of(stack, "Guardrails") as (jvm, beans, bean):

        def change(value: int) -> None:
            given = jvm.gateway.new_array(jvm.java.java.lang.Object, 2)
            given[0] = given[1] = value
            beans.invoke(bean, f"set{name}Threshold", given, jvm.strings("int", "int"))

        change(fails)
        try:
            yield
        finally:
            change(-1)


@contextmanager
def copies_by_default(stack: Stack, number: int) -> Iterator[None]:
    """Meanwhile keyspaces have as many copies by default; no guardrail may ask for more."""
    with has(stack, "StorageService", "DefaultKeyspaceReplicationFactor", number):
        yield


@contextmanager
def has(stack: Stack, bean: str, attribute: str, value: object) -> Iterator[None]:
    """Meanwhile a bean of the node has this attribute."""
    with bean_of(stack, bean) as (jvm, beans, name):
        new = jvm.java.javax.management.Attribute
        before = beans.getAttribute(name, attribute)
        beans.setAttribute(name, new(attribute, value))
        try:
            yield
        finally:
            beans.setAttribute(name, new(attribute, before))


@contextmanager
def bean_of(stack: Stack, bean: str) -> Iterator[tuple[Jvm, Any, Any]]:
    """A JVM, a node's beans, and the name of one of them."""
    port = stack.spec.ports.cassandra_jmx
    with closing(Jvm(60.0)) as jvm:
        management = jvm.java.javax.management
        address = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{port}/jmxrmi"
        url = management.remote.JMXServiceURL(address)
        beans = management.remote.JMXConnectorFactory.connect(url, None).getMBeanServerConnection()
        yield jvm, beans, management.ObjectName(f"org.apache.cassandra.db:type={bean}")


@contextmanager
def revoked(admin: Session, right: str) -> Iterator[None]:
    """Meanwhile the role has it not; Cassandra remembers rights for a moment."""
    admin.execute(f"REVOKE {right} FROM reconciler")
    try:
        yield
    finally:
        admin.execute(f"GRANT {right} TO reconciler")
