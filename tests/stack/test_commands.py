"""The operator's commands against real servers: doctor, status, findings, resume."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from cassandra.cluster import Session
from kafka import KafkaProducer

from checkpoints.bookmarks import Bookmark, flat
from checkpoints.cassandra import (
    CassandraBookmarks,
    CassandraJournal,
    CassandraLineage,
    Store,
    create_schema,
)
from checkpoints.clock import now_micros
from checkpoints.lease import Lease
from deploy.mailserver import james
from reconcilers.declared.families.message import MESSAGE
from reconcilers.limits.breakers import Breaker
from reconcilers.rows.finding import Finding, State
from reconcilers.words.errors import Misconfigured
from reconcilers.words.model import Kind, Slot
from streaming import app
from streaming.commands.look import status
from streaming.commands.running.leases import Holding, clocks_apart
from streaming.commands.running.threads import Threads
from streaming.commands.wiring.stream_names import StreamNames
from streaming.settings import Mode, Settings, load
from streaming.tables import disconnect
from streaming.topics import Watcher, own_topics, publish_dead_letters
from tests.builders.failing import unreachable
from tests.builders.slots import mailbox_of, uid_of
from tests.contract.making import a_finding, a_slot
from tests.endpoints import Endpoints
from tests.events import comes
from tests.sessions import create_keyspace
from tests.stack.streams import PATIENCE, until, write_settings

pytestmark = pytest.mark.stack

Reconcile = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def config(
    stack: Endpoints,
    cassandra: Session,
    mail_keyspace: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """Settings with a keyspace and topics of this file's own, beside the shared mail keyspace."""
    own = f"reconciler_{uuid.uuid4().hex[:8]}"
    create_schema(cassandra, own)
    path = tmp_path_factory.mktemp("commands") / "reconcile.toml"
    agent = {"agent": {"http": [stack.agent_http]}}
    yield write_settings(path, stack, mail_keyspace, own, agent)
    disconnect(load(path, {}).cassandra)
    cassandra.execute(f"DROP KEYSPACE {own}")


@pytest.fixture(scope="module")
def settings(config: Path) -> Settings:
    found = load(config, {})
    watcher = Watcher(found.kafka)
    kafka = found.kafka
    watcher.create((kafka.suspects_topic, kafka.observe_suspects_topic, kafka.dead_letters_topic))
    watcher.close()
    return found


@pytest.fixture
def store(settings: Settings, cassandra: Session) -> Store:
    return Store(cassandra, settings.cassandra.own_keyspace)


@pytest.fixture
def journal(settings: Settings, store: Store) -> Iterator[CassandraJournal]:
    """The journal of the commands; empty again after the test."""
    made = CassandraJournal(store, scope=settings.cassandra.keyspace)
    yield made
    for finding in list(made.open_findings(MESSAGE)):
        made.close(finding, State.HEALED, now_micros())
    made.close_breakers(now_micros())


@pytest.fixture
def reconcile(config: Path, capsys: pytest.CaptureFixture[str]) -> Reconcile:
    """Run a command in this process; its exit code and what it printed."""

    def run(*argv: str, file: Path = config) -> tuple[int, str]:
        capsys.readouterr()
        arguments = app.parsed([*argv, "--config", str(file)])
        code = arguments.run(load(file, {}), arguments)
        return code, capsys.readouterr().out

    return run


def put(journal: CassandraJournal, kind: Kind, state: State) -> Finding:
    found = a_finding(MESSAGE, a_slot(), kind=kind, state=state, accepted=frozenset())
    journal.put(found)
    return found


def problems(answer: tuple[int, str]) -> list[str]:
    """The lines of a doctor who finds something wrong; none where he exits with 0."""
    code, said = answer
    found = [line for line in said.splitlines() if line.startswith("problem")]
    assert code == bool(found), said
    return found


def place(finding: Finding) -> str:
    return f"{mailbox_of(finding.slot)}/{uid_of(finding.slot)}"


def values_in(settings: Settings, topic: str) -> list[Any]:
    """All records of a topic, decoded."""
    watcher = Watcher(settings.kafka)
    try:
        return [
            json.loads(record.value or b"null")
            for partition, end in watcher.end_offsets([topic]).get(topic, {}).items()
            for record in watcher.records(topic, partition, 0, end)
        ]
    finally:
        watcher.close()


def published(settings: Settings, slot: Slot) -> bool:
    """Whether the slot's key is among the suspects."""
    wanted = (str(mailbox_of(slot)), uid_of(slot))
    wakes = [each["wake"] for each in values_in(settings, settings.kafka.suspects_topic)]
    return wanted in {(wake["mailboxid"], wake["uid"]) for wake in wakes}


# --- doctor -------------------------------------------------------------------------------------


@pytest.fixture
def agent_at_rest(settings: Settings, stack: Endpoints, cassandra: Session) -> None:
    """The agent was started again for the tables of these tests: what is written there comes."""
    table, mailboxid = f"{settings.cassandra.keyspace}.messageidtable", uuid.uuid1()
    cassandra.execute(f"INSERT INTO {table} (mailboxid, uid) VALUES (%s, 7)", (mailboxid,))
    event = {"mailboxid": str(mailboxid), "uid": 7}
    assert comes(stack.bootstrap_servers, stack.topic_prefix, event)
    cassandra.execute(f"DELETE FROM {table} WHERE mailboxid = %s", (mailboxid,))


@pytest.mark.usefixtures("agent_at_rest")
def test_doctor_finds_nothing_wrong(settings: Settings, reconcile: Reconcile) -> None:
    code, said = reconcile("doctor")
    assert (code, problems((code, said))) == (0, [])
    for expected in (
        "CDC is on for imapuidtable, messageidtable",
        "messageidtable follows 16 columns of imapuidtable",
        f"keyspace {settings.cassandra.own_keyspace} has the tables of this version",
        "differs from ours by",
        "is well",
        "topics keep records for a day or more",
    ):
        assert expected in said


@pytest.fixture
def bare(stack: Endpoints, cassandra: Session, tmp_path: Path) -> Iterator[tuple[Path, str, str]]:
    """Settings with mail tables that have no CDC, without our own keyspace and its topics."""
    keyspace, own = f"mail_{uuid.uuid4().hex[:8]}", f"reconciler_{uuid.uuid4().hex[:8]}"
    james_tables = james.schema_statements(keyspace)
    create_keyspace(cassandra, keyspace)
    for statement in james_tables:
        if ".imapuidtable" in statement or ".messageidtable" in statement:
            cassandra.execute(statement)
    canaries = f"{own}_canary"
    changes: dict[str, dict[str, Any]] = {
        "agent": {"http": [stack.agent_http]},
        "canary": {"keyspace": canaries},
    }
    yield write_settings(tmp_path / "bare.toml", stack, keyspace, own, changes), keyspace, own
    for each in (keyspace, own, canaries):
        cassandra.execute(f"DROP KEYSPACE IF EXISTS {each}")


@pytest.mark.usefixtures("agent_at_rest")
def test_doctor_fixes_with_an_admins_credentials_and_leads_the_way_out(
    bare: tuple[Path, str, str], cassandra: Session, reconcile: Reconcile, tmp_path: Path
) -> None:
    file, keyspace, own = bare
    settings = load(file, {})
    turn_on = f"ALTER TABLE {keyspace}.imapuidtable WITH cdc = true AND gc_grace_seconds = 864001"
    code, said = reconcile("doctor", "--fix", file=file)
    assert code == 1
    assert f"{turn_on};" in said.splitlines()
    assert f"CREATE TABLE IF NOT EXISTS {own}.findings" in said
    assert f"--topic {own}.dead-letters" in said
    assert captured(cassandra, keyspace) == {"imapuidtable": False, "messageidtable": False}

    (password := tmp_path / "password").write_text("cassandra\n")
    admin = ("--admin-username", "cassandra", "--admin-password-file", str(password))
    code, said = reconcile("doctor", "--fix", *admin, file=file)
    found = problems((code, said.rpartition("done     ")[2]))
    # the supervisor of these servers restarts their agent: there are new tables to be captured
    assert [line for line in found if settings.agent.http[0] not in line] == []
    until("nothing is wrong", lambda: not problems(reconcile("doctor", file=file)))
    assert f"done     {turn_on}" in said
    assert f"done     ALTER TABLE {keyspace}.imapuidtable WITH gc_grace_seconds = 864000" in said
    assert captured(cassandra, keyspace) == {"imapuidtable": True, "messageidtable": True}
    assert captured(cassandra, f"{own}_canary") == {"canary": True}
    watcher = Watcher(settings.kafka)
    assert not watcher.missing((settings.kafka.topic_prefix, *own_topics(settings.kafka)))
    watcher.close()

    code, said = reconcile("doctor", "--off", file=file)
    assert code == 0
    off = said.index(f"ALTER TABLE {keyspace}.imapuidtable WITH cdc = false;")
    assert off < said.index("nodetool flush") < said.index("stop the agents")
    assert captured(cassandra, keyspace)["imapuidtable"]

    _, said = reconcile("doctor", "--off", *admin, "--wait", "1", file=file)
    assert captured(cassandra, keyspace) == {"imapuidtable": False, "messageidtable": False}
    assert captured(cassandra, f"{own}_canary") == {"canary": False}
    assert said.index("cdc = false") < said.index("stop the agents")


def captured(session: Session, keyspace: str) -> dict[str, bool]:
    rows = session.execute(
        "SELECT table_name, cdc FROM system_schema.tables WHERE keyspace_name = %s", (keyspace,)
    )
    return {row.table_name: bool(row.cdc) for row in rows}


def test_doctor_goes_on_when_cassandra_is_gone(
    stack: Endpoints, settings: Settings, reconcile: Reconcile, tmp_path: Path
) -> None:
    gone = {
        "cassandra": {"port": 1},
        "kafka": settings.kafka.model_dump(mode="json", exclude_none=True),
    }
    file = write_settings(tmp_path / "gone.toml", stack, stack.keyspace, "reconciler_x", gone)
    code, said = reconcile("doctor", file=file)
    assert code == 1
    assert "problem  connecting to Cassandra at 127.0.0.1 port 1" in said
    assert "topics are there" in said


NO_FILE = "--fix --admin-username x --admin-password-file /no/such/file"
NO_USE = "--admin-username x --admin-password-file /dev/null"


@pytest.mark.parametrize("options", ["--fix --admin-username x", NO_FILE, NO_USE])
def test_half_an_admin_is_refused(options: str, reconcile: Reconcile) -> None:
    with pytest.raises(Misconfigured):
        reconcile("doctor", *options.split())


# --- status -------------------------------------------------------------------------------------


def test_status_while_the_stream_is_down(
    settings: Settings,
    store: Store,
    journal: CassandraJournal,
    reconcile: Reconcile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = StreamNames.of(settings, Mode.REPAIR)
    topic = names.suspects_topic
    watcher = Watcher(settings.kafka)
    ends = watcher.end_offsets([topic])[topic]
    watcher.close()
    settled = {(topic, number): max(end - 2, 0) for number, end in ends.items()}
    CassandraBookmarks(store).record(Bookmark(names.bookmarks(MESSAGE), settled))
    CassandraLineage(store).watch_from(1_700_000_000_000_000)
    put(journal, Kind.MISSING_ROW, State.STUCK)
    put(journal, Kind.UNRESOLVED, State.REPORTED)
    put(journal, Kind.UNRESOLVED, State.REPORTED)
    journal.open_breaker(Breaker.REMOVALS, "101 in a minute", now_micros())

    code, said = reconcile("status", "--format", "json")
    told = json.loads(said)
    assert code == 0
    assert (told["stuck"], told["unresolved"], told["delay"]) == (1, 2, settings.stream.delay)
    assert told["breakers"] == {"removals": "101 in a minute"}
    assert told["watched_since"] == "2023-11-14T22:13:20+00:00"
    assert {(each["kind"], each["state"], each["open"]) for each in told["findings"]} == {
        ("missing_row", "stuck", 1),
        ("unresolved", "reported", 2),
    }
    (stream,) = told["streams"]
    assert (stream["name"], stream["holder"]) == ("repair", None)
    assert stream["last_settled"]
    expected = {number: end - max(end - 2, 0) for number, end in ends.items()}
    lag = {each["partition"]: each for each in stream["lag"] if each["topic"] == topic}
    assert {number: each["records"] for number, each in lag.items()} == expected

    monkeypatch.setattr(status, "Watcher", unreachable)
    code, said = reconcile("status")
    assert code == 0
    assert "the lag is not known: no host answered" in said
    assert "breaker removals is OPEN" in said


def test_status_tells_the_lag_in_time_and_who_holds_the_lease(
    settings: Settings,
    store: Store,
    journal: CassandraJournal,
    reconcile: Reconcile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stuck = a_finding(MESSAGE, a_slot(), state=State.STUCK)
    journal.put(stuck)
    assert reconcile("findings", "--retry", place(stuck))[0] == 0  # something that is not read
    names = StreamNames.of(settings, Mode.REPAIR)
    monkeypatch.setattr(status, "now_micros", lambda: now_micros() + 90_000_000)
    with closing(Watcher(settings.kafka)) as watcher:
        starts = flat(watcher.beginning_offsets([names.suspects_topic]))
    CassandraBookmarks(store).record(Bookmark(names.bookmarks(MESSAGE), starts))
    with Holding(names, store, Threads(Event()), clocks_apart(settings.stream)) as lease:
        assert isinstance(lease, Lease)
        (stream,) = json.loads(reconcile("status", "--format", "json")[1])["streams"]
    assert stream["holder"]["host"]
    assert stream["records"] > 0
    assert any(each["oldest"] for each in stream["lag"])
    assert 90 <= stream["seconds"] < 300


# --- findings -----------------------------------------------------------------------------------


def test_findings_are_listed_filtered_and_exported(
    journal: CassandraJournal, reconcile: Reconcile
) -> None:
    stuck = put(journal, Kind.MISSING_ROW, State.STUCK)
    other = put(journal, Kind.DUPLICATE_UID, State.REPORTED)
    code, said = reconcile("findings")
    assert code == 0
    assert place(stuck) in said
    assert place(other) in said
    assert stuck.sentence in said
    for filters in (
        ("--state", "stuck"),
        ("--kind", "missing_row"),
        ("--mailbox", str(mailbox_of(stuck.slot))),
    ):
        _, said = reconcile("findings", *filters, "--format", "jsonl")
        (line,) = said.splitlines()
        assert json.loads(line)["mailboxid"] == str(mailbox_of(stuck.slot))
    _, said = reconcile("findings", "--format", "csv", "--limit", "1")
    assert len(said.splitlines()) == 2
    assert reconcile("findings", "--projection", "recent_uids") == (0, "no findings\n")


def test_the_log_of_a_day_tells_how_findings_ended(
    journal: CassandraJournal, reconcile: Reconcile
) -> None:
    finding = put(journal, Kind.EXTRA_ROW, State.INTENDED)
    journal.close(finding, State.VERIFIED, now_micros())
    mailbox = ("--mailbox", str(mailbox_of(finding.slot)), "--format", "jsonl")
    _, said = reconcile("findings", "--log", "today", *mailbox)
    assert [json.loads(line)["state"] for line in said.splitlines()] == ["intended", "verified"]
    assert reconcile("findings", *mailbox) == (0, "")
    assert reconcile("findings", "--log", "2020-01-01") == (0, "no findings\n")


def test_a_stuck_finding_is_tried_again(
    settings: Settings, journal: CassandraJournal, reconcile: Reconcile
) -> None:
    stuck = put(journal, Kind.MISSING_ROW, State.STUCK)
    reported = put(journal, Kind.DUPLICATE_UID, State.REPORTED)
    observed = put(journal, Kind.MISSING_ROW, State.OBSERVED)
    three = (stuck, reported, observed)
    code, said = reconcile("findings", "--retry", *map(place, three))
    assert (code, "2 retried" in said) == (1, True)
    assert f"refused  {place(observed)}" in said
    found = journal.recall(MESSAGE, "messages", slots := [each.slot for each in three])
    assert (found[stuck.slot].state, found[stuck.slot].attempts) == (State.HELD, 0)
    assert [found[slot].state for slot in slots[1:]] == [State.REPORTED, State.OBSERVED]
    assert [published(settings, slot) for slot in slots] == [True, True, False]


def test_held_classes_are_accepted_all_at_once(
    settings: Settings, journal: CassandraJournal, reconcile: Reconcile
) -> None:
    held = [put(journal, Kind.MAILBOX_WITHOUT_TRUTH, State.REPORTED) for _ in range(3)]
    other = put(journal, Kind.SHADOWED_DELETE, State.REPORTED)
    argv = ("findings", "--accept", "--all", "--yes", "--kind", "mailbox_without_truth")
    code, said = reconcile(*argv)
    assert code == 0
    assert "3 accepted" in said
    slots = [each.slot for each in (*held, other)]
    found = journal.recall(MESSAGE, "messages", slots)
    assert [bool(found[slot].accepted) for slot in slots] == [True, True, True, False]
    assert all(published(settings, each.slot) for each in held)


@pytest.mark.parametrize(
    "argv",
    [("--retry",), ("--accept", f"{uuid.uuid1()}/1", "--all"), ("--retry", "--log", "today")],
)
def test_a_decision_needs_to_be_told_on_what(argv: tuple[str, ...], reconcile: Reconcile) -> None:
    with pytest.raises(Misconfigured):
        reconcile("findings", *argv)


@pytest.mark.parametrize(
    "argv", [("--retry", "7"), ("--accept", "x/7"), ("--mailbox", "x"), ("--log", "yesterday")]
)
def test_a_mistyped_argument_is_told(
    argv: tuple[str, str], reconcile: Reconcile, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        reconcile("findings", *argv)
    assert ended.value.code == 2
    assert " is not " in capsys.readouterr().err


def test_dead_letters_are_published_once_more_unchanged(
    settings: Settings, reconcile: Reconcile
) -> None:
    topic = f"{settings.cassandra.own_keyspace}.events"
    producer = KafkaProducer(bootstrap_servers=settings.kafka.bootstrap_servers)
    watcher = Watcher(settings.kafka)
    watcher.create([topic])
    sent = producer.send(topic, key=b"\xffkey", value=b"{not json", partition=0).get(
        timeout=PATIENCE
    )
    letter = {"topic": topic, "partition": 0, "reason": "malformed", "raw": b"{not json"}
    letters = [letter | {"offset": offset} for offset in (sent.offset, sent.offset + 40)]
    publish_dead_letters(settings.kafka, [*letters, letters[0] | {"topic": "no.such.topic"}])
    code, said = reconcile("findings", "--retry-dead-letters")
    assert code == 1
    assert "1 published again, 2 cannot be" in said
    end = sum(watcher.end_offsets([topic])[topic].values())
    assert end == 2
    partitions = watcher.end_offsets([topic])[topic]
    records = [
        (record.key, record.value)
        for number, after in partitions.items()
        for record in watcher.records(topic, number, 0, after)
    ]
    assert records == [(b"\xffkey", b"{not json")] * 2
    assert reconcile("findings", "--retry-dead-letters") == (0, "no new dead letters\n")
    watcher.close()
    producer.close()


# --- resume -------------------------------------------------------------------------------------


def test_resume_closes_every_breaker(journal: CassandraJournal, reconcile: Reconcile) -> None:
    journal.open_breaker(Breaker.REPAIRS, "1001 in a minute", now_micros())
    journal.open_breaker(Breaker.REMOVALS, "101 in a minute", now_micros())
    code, said = reconcile("resume")
    assert code == 0
    assert "breaker repairs, open: 1001 in a minute" in said
    assert journal.breakers() == {}
    assert reconcile("resume") == (0, "nothing is paused, and no breaker is open\n")


# --- as a program -------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["status", "findings", "pause", "resume"])
def test_a_keyspace_that_is_not_there_is_told(
    command: str, stack: Endpoints, mail_keyspace: str, reconcile: Reconcile, tmp_path: Path
) -> None:
    file = write_settings(tmp_path / "reconcile.toml", stack, mail_keyspace, "not_there", {})
    with pytest.raises(Misconfigured, match="keyspace not_there lacks step 1"):
        reconcile(command, file=file)


def test_the_report_counts_a_finding_and_shows_it(
    reconcile: Reconcile, journal: CassandraJournal, tmp_path: Path
) -> None:
    since = datetime.now(UTC).isoformat()
    finding = a_finding(MESSAGE, a_slot(), state=State.REPORTED, accepted=frozenset())
    found = replace(finding, found_at=now_micros(), sentence="<b>é\x1b")
    journal.put(found)
    journal.open_breaker(Breaker.REMOVALS, "it is too much", now_micros())
    page = tmp_path / "report.html"
    code, said = reconcile("report", "--since", since, "--format", "json", "--html", str(page))
    told = json.loads(said)
    assert (code, told["found"]) == (0, 1)
    assert [each["sentence"] for each in told["examples"]] == [found.sentence]
    assert [each["reason"] for each in told["breakers"] if each["closed"] is None] == [
        "it is too much"
    ]
    assert "&lt;b&gt;é\\x1b" in page.read_text(encoding="utf-8")
    assert "still OPEN" in reconcile("report")[1]
