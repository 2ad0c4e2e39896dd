"""What a person decides reaches the stream that runs: resume, and a retry of what was stuck."""

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cassandra.cluster import Session

from checkpoints.cassandra import CassandraJournal, Store, create_schema
from checkpoints.clock import now_micros
from reconcilers.declared.families.message import MESSAGE
from reconcilers.declared.writes import SetCells
from reconcilers.limits.breakers import Breaker
from reconcilers.rows.finding import Finding, State
from reconcilers.words.model import Kind, Slot
from streaming import app
from streaming.settings import load
from tests.builders.slots import mailbox_of, uid_of
from tests.contract.making import MESSAGES, a_finding
from tests.endpoints import Endpoints
from tests.stack.streams import Stream, until, write_settings

pytestmark = [pytest.mark.stack, pytest.mark.long(part="commands")]


def reconcile(config: Path, *argv: str) -> int:
    arguments = app.parsed([*argv, "--config", str(config)])
    return int(arguments.run(load(config, {}), arguments))


def lose_a_row(session: Session, keyspace: str, slot: Slot) -> None:
    """A message in the truth whose projection row was never written."""
    session.execute(
        f"INSERT INTO {keyspace}.imapuidtable (messageid, mailboxid, uid, modseq, flagseen,"
        " internaldate, bodystartoctet, fullcontentoctets, headercontent)"
        " VALUES (%s, %s, %s, 1, true, %s, 3, 4, 'h') IF NOT EXISTS",
        (uuid.uuid1(), mailbox_of(slot), uid_of(slot), datetime.now(UTC)),
    )


def stuck_at(slot: Slot) -> Finding:
    """Three repairs did not hold."""
    writes = (SetCells(MESSAGES, slot, now_micros() - 60_000_000, {"modseq": 1}),)
    made = a_finding(MESSAGE, slot, kind=Kind.MISSING_ROW, state=State.STUCK, accepted=frozenset())
    return replace(made, attempts=3, writes=writes, before=None, truth=(), next_look=None)


def test_resume_and_retry_reach_the_running_stream(
    stack: Endpoints, cassandra: Session, mail_keyspace: str, tmp_path: Path
) -> None:
    own = f"reconciler_{uuid.uuid4().hex[:8]}"
    create_schema(cassandra, own)
    config = write_settings(tmp_path / "reconcile.toml", stack, mail_keyspace, own, {})
    journal = CassandraJournal(Store(cassandra, own), scope=mail_keyspace)
    held, stuck = Slot(uuid.uuid1(), 1), Slot(uuid.uuid1(), 2)
    journal.put(stuck_at(stuck))
    journal.open_breaker(Breaker.REPAIRS, "opened by the test", now_micros())

    def now_at(slot: Slot) -> Finding | None:
        return journal.recall(MESSAGE, "messages", [slot]).get(slot)

    def row(slot: Slot) -> Any:
        query = f"SELECT * FROM {mail_keyspace}.messageidtable WHERE mailboxid = %s AND uid = %s"
        return cassandra.execute(query, (mailbox_of(slot), uid_of(slot))).one()

    with Stream(config) as stream:
        stream.wait_until_watching()
        for slot in (held, stuck):
            lose_a_row(cassandra, mail_keyspace, slot)
        until("one is held", lambda: (at := now_at(held)) and at.state is State.HELD)
        until("the other was looked at", lambda: (at := now_at(stuck)) and at.next_look)
        assert row(held) is None
        assert row(stuck) is None

        assert reconcile(config, "resume") == 0
        until("what was held is repaired", lambda: row(held))
        until("and verified", lambda: now_at(held) is None)
        assert row(stuck) is None

        place = f"{mailbox_of(stuck)}/{uid_of(stuck)}"
        assert reconcile(config, "findings", "--retry", place) == 0
        until("what was stuck is repaired", lambda: row(stuck))
        until("and verified", lambda: now_at(stuck) is None)

        def told() -> str:
            return str(stream.findings(uid=2, kind="missing_row")[-1]["message"])

        until("its end is told", lambda: told().startswith("verified"))
        assert stream.stop() == 0
    cassandra.execute(f"DROP KEYSPACE {own}")
