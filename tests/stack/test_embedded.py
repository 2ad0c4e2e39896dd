"""The embedded stack itself: events of real servers, faults and restarts, and nothing left behind.

It starts one stack of its own, beside the one that other tests share, because it breaks it.
"""

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient

from deploy.embedded import ADMIN, Stack, Wanted, open_session, topics
from deploy.embedded.wait import HANG_S
from tests.stack.embedded import processes_of
from tests.stack.scenes import Answer

pytestmark = pytest.mark.stack

ROOT = Path(__file__).resolve().parents[2]
CREATE = (
    "CREATE KEYSPACE apache_james WITH replication = "
    "{'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TYPE apache_james.mailbox_base (namespace text, user text)",
    "CREATE TABLE apache_james.imapuidtable (messageid timeuuid, mailboxid timeuuid, uid bigint, "
    "modseq bigint, headercontent text, PRIMARY KEY (messageid, mailboxid, uid))",
    "CREATE TABLE apache_james.messageidtable (mailboxid timeuuid, uid bigint, "
    "messageid timeuuid, modseq bigint, headercontent text, PRIMARY KEY (mailboxid, uid))",
    "CREATE TABLE apache_james.mailboxcounters (mailboxid timeuuid PRIMARY KEY, count counter)",
)
MAILBOX = (
    "CREATE TABLE apache_james.mailbox (id timeuuid PRIMARY KEY, "
    "mailboxbase frozen<mailbox_base>, name text)"
)


ROWS = 12
"""So many that, of several nodes, each has some of them."""
CAPTURED = ("imapuidtable", "messageidtable", "mailbox")

PREPARED = (
    "INSERT INTO apache_james.messageidtable (headercontent, mailboxid, messageid, uid, modseq)"
    " VALUES (?, ?, ?, 1, 1)"
)
"""Prepared before the tables are captured, as a mail server has."""


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose keyspace somebody else creates while it runs."""
    with Stack(tmp_path_factory.mktemp("embedded"), Wanted(tables=CAPTURED)) as stack:
        with open_session(stack) as session:
            for statement in CREATE:
                session.execute(statement)
            session.prepare(PREPARED)
            until(lambda: _sees_all(stack, session), "the tables that appeared are captured")
        yield stack


class Changes:
    """Writes to the tables, and waits until the events of those writes are in Kafka."""

    def __init__(self, stack: Stack, session: Any) -> None:
        self._stack = stack
        self._session = session

    def write(self, table: str, filler: str = "") -> str:
        """Write one row to a message table; return a text that only its event contains."""
        mark = uuid.uuid4().hex
        self._session.execute(
            f"UPDATE apache_james.{table} SET headercontent = %s, modseq = 1 "
            "WHERE mailboxid = %s AND messageid = %s AND uid = 1"
            if table == "imapuidtable"
            else "INSERT INTO apache_james.messageidtable "
            "(headercontent, mailboxid, messageid, uid, modseq) VALUES (%s, %s, %s, 1, 1)",
            (mark + filler, uuid.uuid1(), uuid.uuid1()),
        )
        return mark

    def execute(self, statement: str, values: tuple[object, ...]) -> None:
        self._session.execute(statement, values)

    def await_events(self, table: str, *marks: str) -> None:
        """Return when the agent's topic holds an event of `table` for each mark."""
        consumer = KafkaConsumer(
            self._stack.topic_prefix,
            bootstrap_servers=self._stack.bootstrap_servers,
            auto_offset_reset="earliest",
            max_partition_fetch_bytes=topics.MAX_MESSAGE_BYTES,
        )
        missing, source = {mark.encode() for mark in marks}, f'"table":"{table}"'.encode()

        def all_seen() -> bool:
            for records in consumer.poll(timeout_ms=500).values():
                for record in (each for each in records if each.value and source in each.value):
                    missing.difference_update(m for m in set(missing) if m in record.value)
            return not missing

        try:
            until(all_seen, f"events of {table}")
        finally:
            consumer.close()


@pytest.fixture
def changes(own_stack: Stack) -> Iterator[Changes]:
    with open_session(own_stack) as session:
        yield Changes(own_stack, session)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {HANG_S:.0f} s: {what}"
        time.sleep(0.1)


def _sees_all(stack: Stack, session: Any) -> bool:
    return not stack.uncaptured(session) and not stack.missing() and stack.agent_answers()


def _command(*arguments: str) -> Answer:
    return subprocess.run(
        [sys.executable, "-m", "deploy.embedded", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


def test_what_was_prepared_before_capture_was_on_is_captured(
    own_stack: Stack, changes: Changes
) -> None:
    """First of all: beside a write that is captured, Cassandra captures it too."""
    with open_session(own_stack) as session:
        mark = uuid.uuid4().hex
        session.execute(session.prepare(PREPARED), (mark, uuid.uuid1(), uuid.uuid1()))
    changes.await_events("messageidtable", mark)


def test_changes_of_both_message_tables_become_events(changes: Changes) -> None:
    for table in ("imapuidtable", "messageidtable"):
        changes.await_events(table, changes.write(table))


def test_a_900_kb_cell_passes(changes: Changes) -> None:
    changes.await_events("imapuidtable", changes.write("imapuidtable", "x" * 900_000))


def test_counter_tables_are_left_alone(own_stack: Stack) -> None:
    with open_session(own_stack) as session:
        [row] = session.execute(
            "SELECT cdc FROM system_schema.tables WHERE keyspace_name = 'apache_james' "
            "AND table_name = 'mailboxcounters'"
        )
    assert not row["cdc"]


def test_a_table_with_a_user_defined_type_is_captured_when_it_appears_late(
    own_stack: Stack, changes: Changes
) -> None:
    with open_session(own_stack) as session:
        session.execute(MAILBOX)
        until(lambda: _sees_all(own_stack, session), "the agent sees the mailbox table")
    mark = uuid.uuid4().hex
    changes.execute(
        "INSERT INTO apache_james.mailbox (id, mailboxbase, name) "
        "VALUES (%s, {namespace: '#private', user: 'bob'}, %s)",
        (uuid.uuid1(), mark),
    )
    changes.await_events("mailbox", mark)


def test_topics_are_there_with_room_for_large_records(own_stack: Stack) -> None:
    admin = KafkaAdminClient(bootstrap_servers=own_stack.bootstrap_servers)
    try:
        present = set(admin.list_topics())
    finally:
        admin.close()
    assert set(topics.names(own_stack.spec)) <= present
    producer = KafkaProducer(
        bootstrap_servers=own_stack.bootstrap_servers,
        max_request_size=topics.MAX_MESSAGE_BYTES,
    )
    try:
        for topic in topics.RECONCILER_TOPICS:
            producer.send(topic, b"x" * 5_000_000).get(timeout=HANG_S)
    finally:
        producer.close()


def test_the_supervisor_brings_a_crashed_agent_back(own_stack: Stack, changes: Changes) -> None:
    mark = changes.write("imapuidtable")
    crashed = _pid(own_stack, "agent")
    os.kill(crashed, signal.SIGKILL)
    until(lambda: _pid(own_stack, "agent") not in (0, crashed), "the agent is started again")
    changes.await_events("imapuidtable", mark, changes.write("imapuidtable"))


def test_an_agent_killed_on_purpose_stays_dead_and_catches_up(
    own_stack: Stack, changes: Changes
) -> None:
    own_stack.kill_agent()
    mark = changes.write("imapuidtable")
    log = own_stack.layout.logs / "supervisor.log"
    before = log.read_text(encoding="utf-8").count("starting the agent")
    deadline = time.monotonic() + 3
    until(lambda: time.monotonic() > deadline, "three looks of the supervisor")
    assert own_stack.missing() == ["agent"]
    assert log.read_text(encoding="utf-8").count("starting the agent") == before
    own_stack.start_agent()
    changes.await_events("imapuidtable", mark)


def test_a_paused_agent_goes_on(own_stack: Stack, changes: Changes) -> None:
    own_stack.pause_agent()
    mark = changes.write("imapuidtable")
    assert not own_stack.missing()
    own_stack.resume_agent()
    changes.await_events("imapuidtable", mark)


def test_kafka_gone_and_back_loses_nothing(own_stack: Stack, changes: Changes) -> None:
    own_stack.kill_kafka()
    mark = changes.write("imapuidtable")
    own_stack.start_kafka()
    changes.await_events("imapuidtable", mark)


def test_cassandra_gone_and_back(own_stack: Stack) -> None:
    own_stack.stop_cassandra()
    own_stack.start_cassandra()
    with open_session(own_stack) as session:
        again = Changes(own_stack, session)
        again.await_events("imapuidtable", again.write("imapuidtable"))


@pytest.mark.long(part="servers")
def test_the_command_line_on_a_running_stack(own_stack: Stack) -> None:
    shown = _command("status", "--data-dir", str(own_stack.layout.root))
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout) == own_stack.describe()
    again = _command("up", "--data-dir", str(own_stack.layout.root))
    assert json.loads(again.stdout) == own_stack.describe()
    settings = tomllib.loads(own_stack.config.read_text(encoding="utf-8"))
    assert settings["cassandra"]["port"] == own_stack.cassandra_port
    assert settings["kafka"]["bootstrap_servers"] == own_stack.bootstrap_servers


@pytest.mark.long(part="servers")
def test_other_options_for_the_same_data_are_refused(own_stack: Stack) -> None:
    data = str(own_stack.layout.root)
    refused = _command("up", "--data-dir", data, "--keyspace", "another")
    assert refused.returncode == 1
    assert "was made with keyspace apache_james" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.long(part="servers")
def test_down_and_up_keep_ports_and_data_and_leave_no_process(own_stack: Stack) -> None:
    """The last that uses the stack: it stops it for a moment."""
    data = str(own_stack.layout.root)
    before = own_stack.describe()
    with open_session(own_stack) as session:
        mark = Changes(own_stack, session).write("imapuidtable")
    assert _command("down", "--data-dir", data).returncode == 0
    assert processes_of(own_stack.layout.root) == []
    down = _command("status", "--data-dir", data)
    assert down.returncode == 1
    assert "not running" in down.stderr
    up = _command("up", "--data-dir", data)
    assert json.loads(up.stdout) == before
    with open_session(own_stack) as session:
        rows = session.execute("SELECT headercontent FROM apache_james.imapuidtable")
        assert mark in {row["headercontent"] for row in rows}
        Changes(own_stack, session).await_events("imapuidtable", mark)


@pytest.mark.long(part="servers")
@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(release="4.1", tables=CAPTURED),
        Wanted(admin=ADMIN, tables=CAPTURED),
        Wanted(release="4.1", tables=CAPTURED, data_centres=(2, 1)),
    ],
    ids=["4.1", "auth", "4.1 in two data centres"],
)
def test_the_other_kinds_of_stack_give_the_same_events(tmp_path: Path, wanted: Wanted) -> None:
    with Stack(tmp_path, wanted) as stack, open_session(stack) as session:
        for statement in CREATE:
            session.execute(statement)
        stack.capture_tables()
        changes = Changes(stack, session)
        for table in ("imapuidtable", "messageidtable"):
            marks = [changes.write(table) for _ in range(ROWS)]
            changes.await_events(table, *marks)
        if wanted.admin is not None:
            audited = stack.audit_log.read_text(encoding="utf-8")
            assert "user:cassandra" in audited
            assert "UPDATE apache_james.imapuidtable" in audited
    assert processes_of(tmp_path) == []


def _pid(stack: Stack, name: str) -> int:
    """The pid in a pid file, whether it runs or not; 0 when there is none."""
    text = (stack.layout.run / f"{name}.pid").read_text(encoding="utf-8")
    return int(text.split("\n")[0] or 0)
